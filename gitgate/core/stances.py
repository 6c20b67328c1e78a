"""Core: what one message of a conversation says of a decision, in plain words. Whoever reads a conversation's end asks it.

It knows few sentences, and each of them only as a whole: `I approve the migration` is one, `I approve it once the tests pass`
is none. What it does not know decides nothing. All else in the message must be plain as well: a word that denies, asks,
conditions, quotes or takes back, in any of the languages below, or a sign of a script that could hide one, makes the
message troubled, and nobody reads a yes out of that. Asking the person once more costs little.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from unicodedata import normalize

from .text import neutral
from .values import dataclass

APPROVE, REJECT = "approve", "reject"
MOST = 20_000

_OBJECT = (
    r"(?: (?:it|this|that|(?:the|this|your)(?: proposed| database| schema| production)?"
    r" (?:changes?|deployment|deploy|migration|plan|release|merge|request|proposal|refactoring|schema|rollout"
    r"|pull request|pr|update|upgrade|fix|patch|work|implementation|design)(?: to (?:production|staging))?))"
)
_LEAD = r"(?:(?:yes|ok|okay|great|good|perfect|alright|looks good|lgtm|thanks|thank you)[,:!]? )*"
_DASH = r"(?: ?[:,]| ?[—–-])? "
_NOUN = (
    r"(?:(?:the|my|our|your|final|so|la|le|a|die|de|het|endgültige) )*"
    r"(?:decision|verdict|outcome|entscheidung|décision|decisión|decisão|decisione|beslissing|besluit)"
    r"(?: is| ist| lautet| est| es| é| è)?"
)
_YES = r"approved|genehmigt|freigegeben|approuvée?|validée?|aprobad[oa]|aprovad[oa]|approvat[oa]|goedgekeurd"
_NO = (
    r"rejected|denied|declined|refused|not approved|abgelehnt|nicht genehmigt|rejetée?|refusée?|rechazad[oa]"
    r"|no aprobad[oa]|rejeitad[oa]|não aprovad[oa]|rifiutat[oa]|respint[oa]|non approvat[oa]|afgekeurd|afgewezen"
    r"|niet goedgekeurd"
)
# What either may say: the decision, as such.
_DECIDED = {
    APPROVE: rf"{_NOUN}{_DASH}(?:{_YES}|(?:to )?approve{_OBJECT}?)|approval(?: is|:) granted|決定(?:は|:|：) ?承認(?:です)?"
    r"|(?:决定|決定|结论)(?:是|:|：) ?(?:批准|同意)",
    REJECT: rf"{_NOUN}{_DASH}(?:{_NO}|(?:to )?reject{_OBJECT}?|(?:do not|don't) proceed)|approval(?: is|:) denied"
    r"|決定(?:は|:|：) ?却下(?:です)?|(?:决定|決定|结论)(?:是|:|：) ?(?:拒绝|拒絕|不批准|驳回)",
}
# What only a person may say: an agent approves nothing.
_SPOKEN = {
    APPROVE: rf"{_LEAD}(?:i|we) (?:hereby |do )?approve{_OBJECT}?|{_LEAD}approve{_OBJECT}?|{_LEAD}approved"
    rf"|{_LEAD}(?:this|it|that) is (?:hereby )?approved"
    r"|(?:ja, )?(?:ich genehmige(?: (?:es|das|dies|die änderung|die änderungen))?|ich gebe (?:es|das) frei)"
    r"|(?:oui, )?(?:j'approuve(?: (?:ceci|cela|le changement|la migration))?|je valide|je l'approuve)"
    r"|(?:sí, )?(?:yo |lo |la )?apruebo(?: (?:el cambio|la propuesta|los cambios))?"
    r"|(?:sim, )?(?:eu )?aprovo(?: (?:a mudança|a proposta|isto|isso))?|(?:sì, )?(?:lo |la )?approvo"
    r"|(?:ja, )?ik keur (?:het|dit|dat) goed|(?:はい、)?承認します|我?批准|我?同意",
    REJECT: rf"(?:no[,:!]? )?(?:(?:i|we) (?:hereby )?(?:reject|decline|refuse){_OBJECT}?|reject{_OBJECT}?|rejected)"
    rf"|(?:no[,:!]? )?(?:i|we) (?:do not|don't|will not|won't) approve{_OBJECT}?"
    rf"|(?:no[,:!]? )?(?:do not|don't) (?:proceed|approve|merge|deploy|ship){_OBJECT}?"
    rf"|(?:this|it|that) is (?:hereby )?rejected|(?:nein, )?ich lehne(?: (?:es|das|dies))? ab|ich genehmige (?:es|das) nicht"
    r"|(?:non, )?(?:je refuse|je rejette|je n'approuve pas)|(?:no, )?(?:lo |la )?rechazo|no lo apruebo"
    r"|(?:não, )?(?:eu )?(?:rejeito|não aprovo)|(?:no, )?(?:lo |la )?(?:rifiuto|respingo)|non (?:lo )?approvo"
    r"|(?:nee, )?ik (?:keur|wijs) (?:het|dit|dat) af|(?:いいえ、)?(?:却下します|拒否します|承認しません)"
    r"|我?(?:拒绝|拒絕|不批准|不同意|驳回)",
}
_BARE = {APPROVE: rf"{_YES}|承認", REJECT: rf"{_NO}|却下"}
_MARKS = {
    side: re.compile(rf"(?:[✅❌]\s*)?(\*{{0,2}}){word}\1[.!]?")
    for side, word in ((APPROVE, "APPROVED"), (REJECT, "REJECTED"))
}
_MENTIONS = re.compile(
    r"approv|reject|genehmig|freigegeben|abgelehnt|approuv|valid|aprob|aprov|goedkeur|goedgekeurd|keur|承認|批准|同意|却下|拒"
)
_ENDED = re.compile(r"[.!。！]\W*$")
_COURTESY = re.compile(
    r"(?:/exit|exit|bye|thanks|thank you|danke|merci|gracias|obrigad[oa]|grazie|ありがとう|谢谢)"
)

# Each makes a message troubled. Where a word is plain in one language and denies in another, it counts: asking is cheap.
_TROUBLE_WORDS = """
no not cannot cant dont wont didnt isnt wasnt wouldnt shouldnt couldnt doesnt never none nothing nobody nor neither without
nope nah unless until till if once when whenever whether would could should might may maybe perhaps possibly probably but
however though although except yet pending still later after before only provided providing assuming assume suppose supposing
hypothetically imagine pretend wait hold stop halt cancel cancelled canceled abort retract retracted revert undo withdraw
withdrawn back scratch actually reconsider instead rather kidding joke joking sarcasm unfortunately sorry wrong mistake
mistaken error unclear unsure doubt doubts disagree false ignore disregard example eg template placeholder format sample
draft said says say saying told tells wrote writes written quote quoted quotes quoting according type enter press reply
respond subject contingent conditional conditionally condition conditions tentative tentatively partially partly some
almost nearly fail fails failed failing failure block blocked blocks blocker deny denied denies decline declined
refuse refused refuses refusal disapprove disapproved unapproved non-approved un veto nack different
lack lacks lacking refrain avoid oops reverse reversed opposite contrary far against withhold withheld expected hesitant
yesterday previously earlier formerly tomorrow soon
nicht nichts kein keine keinen keiner keinem nein nie niemals ohne wenn falls sofern sobald aber jedoch doch würde würden
wäre könnte sollte vielleicht warte warten halt stopp erst noch leider bevor nachdem nur außer sondern statt zurück
ne pas non jamais aucun aucune sans si sauf mais cependant toutefois pourtant peut-être attends attendez arrête annule
annulé quand lorsque serait pourrait devrait après avant seulement malheureusement plutôt rien ni
nunca jamás ningún ninguna ninguno sin salvo excepto pero aunque quizá quizás espera esperen cuando sería podría debería
antes después solo sólo todavía aún tampoco nada cancela
não nao nenhum nenhuma sem se mas porém talvez espere aguarde quando seria poderia deveria depois só apenas ainda nem
mai nessun nessuno nessuna senza ma però forse aspetta sarebbe potrebbe dovrebbe prima dopo ancora purché niente
niet niets nee geen nooit zonder als mits tenzij indien maar echter misschien wacht wanneer zou zouden eerst pas nog toch
pero alleen behalve
""".split()
_TROUBLE = re.compile(
    r"(?<![^\W_])(?:"
    + "|".join(sorted({word.casefold() for word in _TROUBLE_WORDS}, key=len, reverse=True))
    + r"|\w+n't|n'\w+|s'ils?|(?:reject|refus|rejet|rechaz|rejeit|rifiut|respin|abgelehn|ablehn|widerr|afgekeur|afgewez|annul|disappr)\w*"
    r"|second thoughts?|e\.g)(?![^\W_])"
    r"|\?|？|~~|[<>]|ない|ません|もし|なら|たら|れば|まで|しかし|でも|だが|ただし|却下|拒|保留|待|未|不|非|かも|だろう|中止|取り消|撤"
    r"|いいえ|ですか|没|沒|无|無|别|別|勿|如果|若|假如|要是|但|除非|等|驳|駁|暂|暫|取消|停|才|可能|也许|或许|否|吗|嗎"
)
# Letters that we can tell apart. Greek or Cyrillic ones, wide or styled ones may spell a word that is not seen here.
_KNOWN = re.compile(
    r"[\t\n\x20-\x7e\xa0-\u017f\u2010-\u2015\u2018-\u201e\u2022\u2026\u2192\u20ac\u3000-\u30ff\u4e00-\u9fff"
    r"、。！：，；（）✅✔\ufe0f👍🎉🚀]*"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^`\n]*)")
_SPLIT = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_MARKERS = re.compile(r"^(?:(?:[-*+•]|\d{1,3}[.)])\s+|[✅✔👍\ufe0f]\s*)+|\*+|__+|[✅✔👍🎉🚀\ufe0f]+$")


class Fence(NamedTuple):
    """A fenced block: what its opening line says, what is in it, and where it stands. `closed`: as it has to be."""

    info: str
    body: str
    first: int
    last: int
    closed: bool


@dataclass(frozen=True)
class Stance:
    """What a message decides, if anything (`side`), and how far its other words can be trusted."""

    side: str = ""
    troubled: bool = False
    mentions: bool = False


# Says which side a sentence takes (the sentence, whether the assistant said it, how it was spelt), or nothing.
Sides = Callable[[str, bool, str], str]
# Says whether other words are about the decision.
Mentions = Callable[[str], bool]


def stance(text: str, *, assistant: bool, sides: Sides, mentions: Mentions) -> Stance:
    if len(text) > MOST or not readable(text):
        return Stance(troubled=True)
    said = [(part, sides(plain(part), assistant, part)) for part in sentences(text)]
    found = {side for _, side in said if side}
    rest = " \n ".join(part for part, side in said if not side)
    places = [place for place, (_, side) in enumerate(said) if side]
    # What follows a no hardly makes it a yes; a yes is the end of what is said, but for thanks.
    spread = any(said[place][1] != REJECT and not courteous(said[place + 1 :]) for place in places)
    led = any(place and leads(said[place - 1], plain(said[place][0])) for place in places)
    meant = len(found) == 1 and not spread and not led
    troubled = bool(found) > meant or is_troubled(rest)
    return Stance(found.pop() if meant else "", troubled, mentions(plain(rest)))


def readable(text: str) -> bool:
    """Whether nothing is hidden in it, and every letter is one that we can tell apart."""
    text = normalize("NFC", text)
    return neutral(text) == text.replace("\r\n", "\n") and _KNOWN.fullmatch(text) is not None


def is_troubled(text: str) -> bool:
    return _TROUBLE.search(plain(text)) is not None


def courteous(after: Sequence[tuple[str, str]]) -> bool:
    """Nothing, or thanks, or the same again."""
    return all(side or is_courtesy(part) for part, side in after)


def is_courtesy(text: str) -> bool:
    return _COURTESY.fullmatch(plain(text)) is not None


def leads(before: tuple[str, str], sentence: str) -> bool:
    """`The reviewer wrote:` makes what follows somebody's words; before a word alone any unfinished sentence does."""
    part, side = before
    alone = any(re.fullmatch(bare, sentence) for bare in _BARE.values())
    unfinished = not side and not _ENDED.search(part) and not is_courtesy(part)
    return plain(part).endswith((":", "：")) or (alone and unfinished)


def approval_sides(sentence: str, assistant: bool, spelt: str) -> str:
    """Which side a whole sentence takes. Of the assistant only `APPROVED`, spelt so, or the decision as such counts."""
    for side in (APPROVE, REJECT):
        if re.fullmatch(_DECIDED[side], sentence):
            return side
        if assistant:
            if _MARKS[side].fullmatch(spelt.strip()):
                return side
        elif re.fullmatch(_SPOKEN[side], sentence) or re.fullmatch(_BARE[side], sentence):
            return side
    return ""


def approval_mentions(rest: str) -> bool:
    return _MENTIONS.search(rest) is not None


def selection_sides(labels: Sequence[str]) -> Sides:
    """A label alone, said by a person; or the decision as such."""
    known = {plain(label): label for label in labels}
    decided = re.compile(rf"(?:{_NOUN}|(?:the |my |our )?(?:choice|selection)(?: is)?){_DASH}(.+)")
    chosen = re.compile(rf"{_LEAD}(?:i choose|i pick|i select|we choose|let's take|let's go with) (.+)")

    def side(sentence: str, assistant: bool, _spelt: str) -> str:
        found = decided.fullmatch(sentence) or (None if assistant else chosen.fullmatch(sentence))
        word = found.group(1) if found else "" if assistant else sentence
        return known.get(word, "")

    return side


def selection_mentions(labels: Sequence[str]) -> Mentions:
    words = [re.escape(plain(label)) for label in labels if plain(label)]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(words)})(?!\w)" if words else r"(?!)")
    return lambda rest: pattern.search(rest) is not None


def plain(sentence: str) -> str:
    """The words of a sentence: no emphasis, no bullet, no full stop, one kind of apostrophe, one blank between them."""
    text = normalize("NFC", sentence).replace("’", "'").replace("‘", "'").strip()
    text = _MARKERS.sub("", text).strip().casefold()
    text = re.sub(r"(?<![.。])[.。]$|[!！]+$", "", text)
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """The sentences of a message, and each line that is code or quoted as one that says nothing by itself."""
    found: list[str] = []
    inside = {number for fence in fences(text) for number in range(fence.first, fence.last + 1)}
    for number, line in enumerate(text.splitlines()):
        if number in inside or line.startswith(("    ", "\t")) or line.lstrip().startswith(">"):
            found.append(f"`{line}`")
        else:
            found += [part for part in _SPLIT.split(line.strip()) if part]
    return [part for part in found if part.strip("` \t")]


def fences(text: str) -> list[Fence]:
    """The fenced blocks, as Markdown has them: a block ends with a line of at least as many of the same sign."""
    found: list[Fence] = []
    mark, info, start, body = "", "", 0, list[str]()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        opened = _FENCE.fullmatch(line.rstrip())
        if not mark:
            if opened:
                mark, info, start, body = opened.group(1), opened.group(2).strip(), number, []
        elif opened and not opened.group(2).strip() and opened.group(1).startswith(mark):
            found.append(Fence(info, "\n".join(body), start, number, True))
            mark = ""
        else:
            body.append(line)
    if mark:
        found.append(Fence(info, "\n".join(body), start, len(lines) - 1, False))
    return found
