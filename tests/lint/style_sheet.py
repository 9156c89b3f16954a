"""Checks style sheets: what cannot be read, what is said twice in a rule, variables that nobody sets."""

import re
import sys

import tinycss2


def tokens(nodes):
    for node in nodes:
        yield node
        for inside in (getattr(node, "content", None), getattr(node, "arguments", None)):
            if isinstance(inside, list):
                yield from tokens(inside)


def check_rules(rules, say):
    for rule in rules:
        if rule.type == "error":
            say(rule, rule.message)
        elif rule.type == "at-rule" and rule.content is not None:
            check_rules(tinycss2.parse_rule_list(rule.content, True, True), say)
        elif rule.type == "qualified-rule":
            seen = set()
            for part in tinycss2.parse_declaration_list(rule.content, True, True):
                if part.type != "declaration":
                    say(part, getattr(part, "message", "expected a declaration"))
                elif part.name in seen:
                    say(part, f"'{part.name}' is said twice in a rule")
                else:
                    seen.add(part.name)


def check_sheet(path, set_elsewhere):
    findings = []
    with open(path, encoding="utf-8") as file:
        text = file.read()

    def say(node, message):
        findings.append((node.source_line, message))

    rules = tinycss2.parse_stylesheet(text, True, True)
    check_rules(rules, say)
    names = [node for rule in rules for node in tokens([*getattr(rule, "prelude", []), *(rule.content or [])])
             if node.type == "ident" and node.value.startswith("--")]
    uses = [node for rule in rules for call in tokens(rule.content or [])
            if call.type == "function" and call.name == "var" for node in call.arguments if node.type == "ident"]
    known = {node.value for node in names if not any(node is use for use in uses)} | set_elsewhere
    for use in uses:
        if use.value not in known:
            say(use, f"nobody sets '{use.value}'")
    findings += [(number, "is longer than 120 columns")
                 for number, line in enumerate(text.split("\n"), 1) if len(line) > 120]
    return [f"{path}:{line}: {message}" for line, message in sorted(findings)]


# the palette is written before the sheet
with open("base/format/palette.c", encoding="utf-8") as source:
    palette = {"--" + name for name in re.findall(r'^ *\{"([a-z-]+)", "#', source.read(), re.M)}
found = [line for path in sys.argv[1:] for line in check_sheet(path, palette)]
print(*found, sep="\n", end="\n" if found else "")
sys.exit(1 if found else 0)
