"""Forms from a tool's JSON schema: what is entered becomes the tool's arguments, or is told to be wrong where it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLineEdit, QPlainTextEdit, QWidget

from desktop.ui.dialogs.form_fields import Field, GroupField, JsonField, OptionField
from desktop.ui.dialogs.tool_form import ToolForm
from tests.ui.person import click, seen, until

pytestmark = pytest.mark.anyio


class Filled:
    """A shown form, and what came of it."""

    def __init__(self, schema: dict[str, Any], values: dict[str, Any] | None = None) -> None:
        self.form = ToolForm(schema, values or {}, submit="Run", abandon="Give up")
        self.submitted: list[dict[str, Any]] = []
        self.abandoned = 0
        self.form.submitted.connect(self.submitted.append)
        self.form.abandoned.connect(self._count)
        self.form.resize(400, 600)
        self.form.show()

    def _count(self) -> None:
        self.abandoned += 1

    def control(self, name: str) -> QWidget:
        [found] = [
            each
            for each in self.form.findChildren(QWidget)
            if each.isVisible() and each.accessibleName() in (name, f"{name}, required")
        ]
        return found

    def enter(self, name: str, text: str) -> None:
        control = self.control(name)
        if isinstance(control, QPlainTextEdit):
            control.setPlainText("")
        control.setFocus()
        QTest.keyClicks(control, text)

    async def result(self) -> dict[str, Any]:
        click(self.form, "Run")
        await until(lambda: self.submitted)
        return self.submitted[-1]


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


async def test_each_kind_of_value_has_its_control_and_its_type() -> None:
    filled = Filled(
        schema(
            "name",
            "count",
            "sure",
            name={"type": "string"},
            count={"type": "integer", "minimum": 1, "maximum": 9},
            ratio={"type": "number"},
            sure={"type": "boolean"},
            maybe={"type": "boolean"},
            color={"enum": ["red", "green", 3]},
            tags={"type": "array", "items": {"type": "string"}},
            sizes={"type": "array", "items": {"type": "integer"}},
            place={"type": "object", "properties": {"street": {"type": "string"}, "number": {"type": "integer"}}},
            other={"type": "object"},
        )
    )
    filled.enter("name", "a name")
    filled.enter("count", "7")
    filled.enter("ratio", "0.25")
    QTest.keyClick(filled.control("sure"), Qt.Key.Key_Space)
    box = filled.control("color")
    assert isinstance(box, QComboBox)
    QTest.keyClicks(box, "3")
    tags = filled.control("tags")
    assert isinstance(tags, QPlainTextEdit)
    tags.setPlainText("one\n\ntwo words")
    filled.enter("sizes", "12")
    filled.enter("street", "Main Road")
    filled.enter("number", "5")
    filled.enter("other", '{"deep": [1, {"x": null}]}')
    assert await filled.result() == {
        "name": "a name",
        "count": 7,
        "ratio": 0.25,
        "sure": True,
        "color": 3,
        "tags": ["one", "two words"],
        "sizes": [12],
        "place": {"street": "Main Road", "number": 5},
        "other": {"deep": [1, {"x": None}]},
    }


async def test_what_is_left_empty_is_left_out() -> None:
    filled = Filled(
        schema("a", a={"type": "string"}, b={"type": "string"}, c={"type": "integer"}, d={"type": "boolean"})
    )
    filled.enter("a", "x")
    assert await filled.result() == {"a": "x"}


async def test_known_values_and_defaults_are_filled_in_and_a_known_value_goes_before_a_default() -> None:
    filled = Filled(
        schema(
            "a",
            a={"type": "string", "default": "default a"},
            b={"type": "integer", "default": 5},
            c={"type": "boolean", "default": True},
            d={"enum": ["x", "y"], "default": "y"},
        ),
        {"a": "known", "unlisted": [1]},
    )
    assert await filled.result() == {"a": "known", "b": 5, "c": True, "d": "y", "unlisted": [1]}


@pytest.mark.parametrize(
    ("property_", "text", "said"),
    [
        ({"type": "integer"}, "1.5", "Enter a whole number."),
        ({"type": "integer"}, "many", "Enter a whole number."),
        ({"type": "number"}, "nan", "Enter a number."),
        ({"type": "number", "minimum": 2}, "1.9", "Enter 2 or more."),
        ({"type": "number", "exclusiveMaximum": 2}, "2", "Enter less than 2."),
        ({"type": "string", "minLength": 3}, "ab", "Enter at least 3 characters."),
        ({"type": "string", "maxLength": 3}, "abcd", "Enter at most 3 characters."),
        ({"type": "string"}, "", "Enter a value."),
        ({"type": "object"}, "[1]", "An object in braces is needed here."),
        ({"type": "object"}, '{"a": }', "look at line 1, column 7"),
        ({"type": "array", "items": {"type": "integer"}}, "x", "Line 1 is no number."),
    ],
)
async def test_what_is_wrong_is_said_at_its_field_and_nothing_is_submitted(
    property_: dict[str, Any], text: str, said: str
) -> None:
    filled = Filled(schema("value", value=property_, other={"type": "string"}))
    filled.enter("value", text)
    click(filled.form, "Run")
    [field] = [each for each in filled.form.findChildren(Field) if said in seen(each)]
    assert field.label == "value"
    assert filled.submitted == []
    assert filled.control("value").hasFocus() or not filled.form.isActiveWindow()


async def test_what_only_the_schema_knows_is_said_as_well() -> None:
    filled = Filled(schema("emails", emails={"type": "array", "items": {"type": "string"}, "minItems": 2}))
    filled.enter("emails", "one")
    click(filled.form, "Run")
    await until(lambda: "minItems" in seen(filled.form))
    assert filled.submitted == []


async def test_enter_submits_shift_enter_begins_a_line_and_escape_gives_up() -> None:
    filled = Filled(schema("text", text={"type": "string"}))
    control = filled.control("text")
    QTest.keyClicks(control, "one")
    QTest.keyClick(control, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(control, "two")
    QTest.keyClick(control, Qt.Key.Key_Return)
    await until(lambda: filled.submitted)
    assert filled.submitted == [{"text": "one\ntwo"}]
    QTest.keyClick(control, Qt.Key.Key_Escape)
    assert filled.abandoned == 1


async def test_enter_in_a_number_submits_too() -> None:
    filled = Filled(schema("n", n={"type": "integer"}))
    control = filled.control("n")
    assert isinstance(control, QLineEdit)
    QTest.keyClicks(control, "4")
    QTest.keyClick(control, Qt.Key.Key_Return)
    await until(lambda: filled.submitted)
    assert filled.submitted == [{"n": 4}]


async def test_the_form_can_be_edited_as_json_and_back() -> None:
    filled = Filled(schema("a", a={"type": "string"}, b={"type": "integer"}), {"a": "x"})
    filled.enter("b", "2")
    click(filled.form, "Edit as JSON")
    [editor] = [each for each in filled.form.findChildren(QPlainTextEdit) if each.isVisible()]
    assert json.loads(editor.toPlainText()) == {"a": "x", "b": 2}
    editor.setPlainText('{"a": "changed", "extra": true}')
    click(filled.form, "Edit in fields")
    number = filled.control("b")
    assert isinstance(number, QLineEdit)
    assert number.text() == ""
    assert await filled.result() == {"a": "changed", "extra": True}


async def test_json_that_is_wrong_is_not_left() -> None:
    filled = Filled(schema("a", a={"type": "string"}))
    click(filled.form, "Edit as JSON")
    [editor] = [each for each in filled.form.findChildren(QPlainTextEdit) if each.isVisible()]
    editor.setPlainText("{")
    click(filled.form, "Edit in fields")
    assert "no valid JSON" in seen(filled.form)
    assert editor.isVisible()


async def test_references_and_or_null_are_followed() -> None:
    filled = Filled(
        {
            "type": "object",
            "$defs": {"Color": {"enum": ["red", "blue"]}, "Loop": {"$ref": "#/$defs/Loop"}},
            "properties": {
                "color": {"$ref": "#/$defs/Color"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                "kind": {"oneOf": [{"const": "a"}, {"const": "b"}]},
                "loop": {"$ref": "#/$defs/Loop"},
                "far": {"$ref": "https://example.org/schema.json"},
            },
        }
    )
    kinds = {field.label: type(field) for field in filled.form.findChildren(Field) if field.isVisible()}
    assert kinds["color"] is OptionField
    assert kinds["kind"] is OptionField
    assert kinds["loop"] is JsonField
    assert kinds["far"] is JsonField
    filled.enter("note", "hello")
    assert await filled.result() == {"note": "hello"}


async def test_text_of_the_schema_is_shown_as_it_is() -> None:
    filled = Filled(schema("x", x={"type": "string", "title": "<b>x</b>\u202e", "description": "<img src=a> & more"}))
    assert "<b>x</b>\\u202E" in seen(filled.form)
    assert "<img src=a> & more" in seen(filled.form)


async def test_a_huge_schema_is_edited_as_json() -> None:
    filled = Filled(schema(**{f"p{number}": {"type": "string"} for number in range(500)}))
    [editor] = [each for each in filled.form.findChildren(QPlainTextEdit) if each.isVisible()]
    assert len(filled.form.findChildren(Field)) == 1
    editor.setPlainText('{"p7": "x"}')
    assert await filled.result() == {"p7": "x"}


async def test_a_huge_list_of_options_is_typed() -> None:
    filled = Filled(schema("x", x={"type": "string", "enum": [str(number) for number in range(100_000)]}))
    assert not filled.form.findChildren(QComboBox)
    filled.enter("x", "nine")
    click(filled.form, "Run")
    await until(lambda: "one of the values" in seen(filled.form))


async def test_an_optional_object_that_is_left_empty_is_left_out_though_it_requires_something() -> None:
    place = {
        "type": "object",
        "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        "required": ["street"],
    }
    filled = Filled(schema(place=place))
    assert filled.form.findChildren(GroupField)
    assert await filled.result() == {}
    filled.enter("city", "Oslo")
    click(filled.form, "Run")
    assert "Enter a value." in seen(filled.form)


async def test_a_tool_without_arguments_says_so() -> None:
    filled = Filled({"type": "object", "properties": {}})
    assert "takes no arguments" in seen(filled.form)
    assert await filled.result() == {}


async def test_a_required_yes_or_no_is_a_check_box() -> None:
    filled = Filled(schema("sure", sure={"type": "boolean"}))
    assert isinstance(filled.control("sure"), QCheckBox)
    assert await filled.result() == {"sure": False}
