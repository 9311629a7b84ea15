"""Regular expressions of Java mean here what they mean there."""

from __future__ import annotations

import pytest

from potok.compat.java.regex import JavaRegexError, compiled, matches

FOUND = [
    (r"\d+", "a1٣22", ["1", "22"]),
    (r"\w+", "añb_1", ["a", "b_1"]),
    (r"\W", "añ", ["ñ"]),
    (r"\s+", "a \t\u00a0b", [" \t"]),
    (r"\h+", "a \t\u00a0b", [" \t\u00a0"]),
    (r"\H", " a\n", ["a", "\n"]),
    (r"\v", "a\x0b\u2028\n", ["\x0b", "\u2028", "\n"]),
    (r"\R", "a\r\nb\rc\u0085", ["\r\n", "\r", "\u0085"]),
    (r"\bé", "aé é", ["é"]),
    (r"\B", "", [""]),
    (r"\A*a", "aa", ["a", "a"]),
    (r"|a", "ab", ["", "", ""]),
    (r".+", "ab\rcd\u2028e", ["ab", "cd", "e"]),
    (r"(?s).+", "a\nb", ["a\nb"]),
    (r"(?d).+", "a\rb\nc", ["a\rb", "c"]),
    (r"a$", "a\r\n", ["a"]),
    (r"a$", "a\nb", []),
    (r"a\Z", "a\u2029", ["a"]),
    (r"a\z", "a\n", []),
    (r"\Aa", "aa", ["a"]),
    (r"(?m)^\w+$", "ab\r\ncd\ref", ["ab", "cd", "ef"]),
    (r"(?m)^", "a\n", [""]),
    (r"(?i)STRASSE", "strasse", ["strasse"]),
    (r"(?i)é", "É", []),
    (r"(?iu)é", "É", ["É"]),
    (r"a(?i)b|c", "aB C c", ["aB", "C", "c"]),
    (r"(a(?i)b)c", "aBc aBC", ["aB"]),
    (r"(?i:a)b", "Ab AB", ["Ab"]),
    (r"(?i)a(?-i)b", "Ab AB", ["Ab"]),
    (r"(?x) a b # all", "ab", ["ab"]),
    (r"(?<n>a)\k<n>", "aa", ["a"]),
    (r"(a)\1", "aa a", ["a"]),
    (r"(a)\11", "aa1", ["a"]),
    (r"\1(a)", "a", []),
    (r"a++b", "aab", ["aab"]),
    (r"a*+a", "aaa", []),
    (r"(?>a+)b", "aab", ["aab"]),
    (r"a{2,3}?", "aaaa", ["aa", "aa"]),
    (r"\Qa.b\E+", "a.bba.b", ["a.bb", "a.b"]),
    (r"\Q[", "[", ["["]),
    (r"\x41\u0042\x{43}\0104\t\e\cA", "ABCD\t\x1b\x01", ["ABCD\t\x1b\x01"]),
    (r"\uD83D\uDE00", "😀", ["😀"]),
    (r"[a-z&&[^aeiou]]+", "hello", ["h", "ll"]),
    (r"[a-c[x-z]]+", "abmxz", ["ab", "xz"]),
    (r"[^a-c[x-z]]+", "abmxz", ["m"]),
    (r"[a-z&&[def]&&[^e]]", "def", ["d", "f"]),
    (r"(?i)[a-z&&[^b]]", "aBb", ["a"]),
    (r"[]a]+", "]a[", ["]a"]),
    (r"[a\-z-]+", "a-z", ["a-z"]),
    (r"[\d\S]+", "1 a", ["1", "a"]),
    (r"[\Q^-]\E]+", "a^-]", ["^-]"]),
    (r"[.$^]+", "a.$^", [".$^"]),
    (r"\p{Alpha}+", "abñ", ["ab"]),
    (r"\p{L}+", "abñЖ1", ["abñЖ"]),
    (r"\pL\PL", "ñ1", ["ñ1"]),
    (r"\p{IsLu}", "aЖ", ["Ж"]),
    (r"\p{gc=Nd}", "٣", ["٣"]),
    (r"[^\p{L}\d]+", "ж1 -", [" -"]),
    (r"[\P{L}]+", "ж1", ["1"]),
    (r"\p{Punct}+", "a[]!~b", ["[]!~"]),
    (r"\p{Lower}\p{Upper}", "aB", ["aB"]),
    (r"\p{javaLowerCase}+", "aéB", ["aé"]),
    (r"(?i)\p{Lu}+", "aBж1", ["aBж"]),
    (r"(?i)[^\p{IsLl}\p{Upper}]", "aB1", ["1"]),
    (r"}]", "}]", ["}]"]),
    (r"(?<=a)b(?!c)", "ab abc", ["b"]),
    ("", "a", ["", ""]),
]

WRONG = [
    "(",
    ")",
    "(a",
    "a)",
    "[",
    "[a",
    "[z-a]",
    "*",
    "+a",
    "a|*",
    "{2}",
    "a{",
    "a{,2}",
    "(?P<n>a)",
    "(?<1>a)",
    r"\k<n>",
    r"\k",
    r"\q",
    r"\G",
    r"\X",
    r"\b{g}",
    r"[\b]",
    "\\",
    r"\p{IsLatin}",
    r"\p{InGreek}",
    r"\p{Nonsense}",
    r"\p{}",
    r"\p{L",
    r"\p",
    "(?U)a",
    "(?q)a",
    "(?<=a+)b",
    r"\x{110000}",
    "[a&&",
    "(?",
    "(?<",
]


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND)
def test_a_pattern_finds_what_it_finds_in_java(pattern: str, text: str, found: list[str]) -> None:
    expression = compiled(pattern)
    group = 1 if expression.groups else 0
    assert [match[group] for match in matches(expression, text)] == found


@pytest.mark.parametrize("pattern", WRONG)
def test_what_cannot_be_said_in_python_is_refused(pattern: str) -> None:
    with pytest.raises(JavaRegexError) as caught:
        compiled(pattern)
    assert str(caught.value)


def test_a_pattern_is_compiled_once() -> None:
    assert compiled(r"once\d") is compiled(r"once\d")
