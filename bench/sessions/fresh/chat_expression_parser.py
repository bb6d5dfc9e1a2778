"""Talk about how to parse formulas; one thing is settled."""

# ruff: noqa: E501  what people say is not wrapped

from scenario import Scenario, bash, read, say, turn

ROOT = "/home/dev/brewcalc"

SCENARIO = Scenario(
    project="brewcalc",
    began="2026-05-22T20:15:00",
    first_commit="Notes",
    files={
        "README.md": "# brewcalc\n\nRecipes for home brewers, scaled. Formulas look like `malt * 1.2 + 50 g`.\n",
        "notes/formulas.md": (
            "# Formulas\n\n- numbers, with units (g, kg, l, ml, %)\n- names of ingredients\n- + - * / and brackets\n"
            "- maybe later: round(), min(), max()\n- people type these by hand on their phone\n"
        ),
    },
    turns=(
        turn(
            "I want to start on the formula parser for brewcalc this weekend and I'm not sure how. notes/formulas.md has what it should understand. What would you suggest?",
            read(f"{ROOT}/notes/formulas.md"),
            say(
                """For a grammar of that size there are three usual ways:

- a parser generator or library such as Lark: you write the grammar, it gives you a tree; little code, but one more dependency and its error messages are about tokens, not about recipes
- a hand-written Pratt parser: about 100 lines, precedence is a small table, and you decide what every error says
- Python's own `ast` with the units replaced beforehand: quick, but `50 g` isn't Python and the replacing gets ugly

I would look at the first two."""
            ),
        ),
        turn(
            "How does the Pratt thing deal with a minus in front of a number?",
            say(
                "A token can have two roles. At the start of an expression `-` is a prefix operator and binds tighter than `*`; after a left operand it is the ordinary minus. The parser keeps one function for each role, and which one is called depends on where the token stands."
            ),
        ),
        turn(
            "is lark even installed here?",
            bash("python -c 'import lark; print(lark.__version__)'", "Check for lark"),
            say("No, it isn't."),
        ),
        turn(
            "Ok then I'm going with the hand-written Pratt parser. The error messages are what matters most to me, people type these on their phones and need to know what they got wrong. I'll write it myself on Saturday, just wanted to think it through",
            say(
                "Good choice for that. Keep the position of every token from the start, then each error can point at the character. Have fun on Saturday!"
            ),
        ),
        turn(
            "thanks! what's a good name for the file, parser.py or formula.py?",
            say("`formula.py`: it says what is parsed. Either is fine."),
        ),
    ),
)
