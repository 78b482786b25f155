"""What is known of languages: tags, function words, and which words are forms of one word.

Most feeds name their language and some do not; a label of one language means something
else in another (*pays*, *have*, *See*, *most*), so that a guess is worth more than none.
Function words make up a third to a half of running text, and those of two languages are
mostly different ones. Of 1,092 items of real feeds that state their language, 1,028 had
words enough for a guess, and every guess was right. It is left open for other texts, and
between languages as close as Catalan and Spanish.

Words with the same Snowball stem may be forms of one word. Stems alone go too far for the names
of concepts (*market* and *marketing*, *Arbeit* and *Arbeiter*), so the endings in which two words
differ have to be those of a plural or a case.

References
----------
G. Grefenstette: Comparing two language identification schemes. JADT 1995.
M. F. Porter: Snowball, a language for stemming algorithms. 2001.
D. Harman: How effective is suffixing? JASIS 42 (1), 1991 (stems that go no further than plurals).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from math import lcm
from types import MappingProxyType
from typing import Any

# Only function words (articles, pronouns, prepositions, conjunctions, auxiliary verbs, particles).
# Published lists are made for search indexes and have hundreds of topic words as well, for which
# a label must not be treated as weak: *computer, system, world, state* in stopwords-iso's English,
# *lugar, obra, personne, gruppo* in its other languages.
STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        language: frozenset(words.split())
        for language, words in {
            "en": """
                a about above after again against all also am an and another any are as at be
                because been before being below between both but by can could did do does doing
                done down during each either else ever every for from had has have having he her
                here hers herself him himself his how i if in into is it its itself just may me
                might more most must my myself neither no nor not now of off often on once one
                only or other our ours ourselves out over own rather same shall she should since
                so some such than that the their theirs them themselves then there these they
                this those though through thus to too under until up upon us very was we were
                what when where whether which while who whom whose why will with within without
                would yet you your yours yourself yourselves
            """,
            "de": """
                aber als also am an andere anderen auch auf aus ausser bei beim bin bis bist da
                dabei dadurch dafür damit dann daran darauf daraus darf darin darum das dass davon
                dazu dein deine dem den denn der deren des dessen dich die dies diese diesem diesen
                dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas
                euch euer eure für gegen gewesen hab habe haben hat hatte hatten hier hin hinter
                ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem
                jeden jeder jedes jene jener kann kein keine keinem keinen keiner können könnte man
                manche mehr mein meine mich mir mit muss müssen nach nicht nichts noch nun nur ob
                oder ohne sehr sein seine seinem seinen seiner seit selbst sich sie sind so solche
                soll sollte sondern sonst über um und uns unser unsere unter viel vom von vor wann
                war waren warum was weder weil welche welcher wenn wer werde werden wie wieder will
                wir wird wo wurde wurden würde würden zu zum zur zwar zwischen
            """,
            "fr": """
                à afin ai aie ainsi alors après as assez au aucun aucune aussi autre autres aux
                avait avant avec avez avons car ce ceci cela celle celles celui ces cet cette ceux
                chaque chez ci comme comment dans de déjà depuis des donc dont du elle elles en
                encore entre es est et étaient était étant été êtes être eu eux fait fut il ils
                jamais je jusque la là laquelle le lequel les lesquels leur leurs lors lui ma mais
                me même mes mien moi moins mon ne ni non nos notre nous on ont or ou où par parce
                pas pendant peu peut plus pour pourquoi puis quand que quel quelle quelles quelque
                quels qui quoi sa sans se selon sera ses si sien son sont sous souvent sur ta tandis
                te tes toi ton toujours tous tout toute toutes très trop tu un une vers voici voilà
                vos votre vous y
            """,
            "es": """
                a además al algo algún alguna algunas alguno algunos ante antes aquel aquella aun
                aún aunque bajo bien cada como cómo con contra cual cuál cuales cualquier cuando
                cuándo de del desde donde dónde dos durante e el él ella ellas ellos en entre era
                eran eres es esa esas ese eso esos esta está están estas este esto estos fue fueron
                ha haber había habían han hasta hay he la las le les lo los más me mi mí mientras
                mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otras otro otros
                para pero poco por porque pues que qué quien quién quienes se sea según ser si sí
                sido sin sino sobre somos son soy su sus también tan tanto te tiene todo todos tras
                tu tú tus u un una unas uno unos usted ustedes y ya yo
            """,
            "it": """
                a ad agli ai al alla alle allo anche ancora avere aveva avevano c che chi ci come
                con contro cosa cui da dagli dai dal dalla dalle dallo degli dei del della delle
                dello di dopo dove due durante e è ed egli era erano essere fa fino fra gli ha hai
                hanno ho i il in io la le lei li lo loro lui ma me mentre mi mia mie miei mio molto
                ne negli nei nel nella nelle nello no noi non nostra nostro o ogni oltre per perché
                però più poi prima proprio qual quale quando quanto quella quelle quelli quello
                questa queste questi questo qui se sei senza si sia siamo sono sopra sotto stata
                stati stato su sua sue sugli sui sul sulla sulle sullo suo suoi tra tu tua tuo
                tutti tutto un una uno vi voi
            """,
            "nl": """
                aan al alle alleen als altijd andere ben bij boven daar dan dat de deze die dit doch
                doen door dus een eens elk elke en er ge geen geweest had hadden hare heb hebben
                heeft hem hen het hier hij hoe hun iemand iets ik in is ja je jij jou jouw jullie
                kan kon kunnen maar me men met mij mijn moet moeten na naar niet niets nog nu of om
                omdat onder ons onze ook op over reeds te tegen toch toen tot tussen u uit uw van
                vanaf veel voor waar waarom waren was wat we wel welke werd werden wie wij wil
                worden wordt zal ze zelf zich zij zijn zo zonder zou zouden
            """,
            "pt": """
                a à ainda além algo alguém algum alguma alguns ante antes ao aos apenas após aquela
                aquele aquilo as às até cada com como contra da das de dela dele deles depois desde
                do dos durante e é ela elas ele eles em enquanto entre era eram essa essas esse
                esses esta está estão este estes eu foi foram há isso isto já lhe lhes mais mas me
                mesmo meu meus minha muito na não nas nem no nos nós nossa nosso num numa o onde os
                ou outra outro para pela pelas pelo pelos pois por porque qual quando que quem são
                se seja sem sempre ser seu seus si sido sob sobre sua suas também te tem têm teu
                toda todas todo todos tu tua um uma uns você vocês vos
            """,
        }.items()
    }
)
"""Primary language subtag to its function words, folded (``ausser`` for ``außer``)."""

_SUBTAGS = re.compile("[-_]")
_NO_LANGUAGE = frozenset({"", "mul", "und", "zxx"})
_LANGUAGES_OF = {
    word: [language for language, known in STOP_WORDS.items() if word in known]
    for word in frozenset[str]().union(*STOP_WORDS.values())
}
_WORD = lcm(*range(1, len(STOP_WORDS) + 1))  # what a word is worth, shared by its languages
_FEWEST, _SMALLEST_SHARE, _LEAD = 3, 0.2, 2

_ENDINGS: Mapping[str, frozenset[tuple[str, ...]]] = {
    language: frozenset(tuple(pair.split("/")) for pair in pairs.split())
    for language, pairs in {
        "en": "/s /es ies/y",
        "de": "/ /e /en /es /n /nen /s e/s n/s",
        "fr": "/s /x l/ux",
        "es": "/s /es ces/z",
        "it": "a/e a/he e/i hi/o i/o",
        "nl": "/e /en /n /s",
        "pt": "/s /es ao/oes is/l m/ns",
    }.items()
}
"""In what two forms of a noun or adjective differ, after what both begin with, in alphabetical
order. Of languages that are not here, words with one stem are forms of one word."""
_UMLAUT = frozenset({("", "er"), ("", "ern")})  # no plural without: *Spieler* is not of *Spiel*
_SHORTEST = 3
_PART, _REST = 5, 4
_VOWELS = frozenset("aeiouyäöü")
_NO_WORDS = ("tran", "mael", "mahl")
"""What is left of words that only look like compounds: Transport, Maelstrom."""


def primary_subtag(tag: str | None) -> str | None:
    """Return the language of a language tag, without region and script; ``None`` for none.

    Examples
    --------
    >>> primary_subtag("en-GB"), primary_subtag("PT_br"), primary_subtag("und")
    ('en', 'pt', None)
    """
    primary = _SUBTAGS.split(tag.strip(), maxsplit=1)[0].lower() if tag else ""
    return None if primary in _NO_LANGUAGE else primary


def guess_language(words: Iterable[str]) -> str | None:
    """Return the language whose function words some folded words have, where that is clear.

    It is clear where at least 3 words, and a fifth of those that are made of letters, are function
    words of the language, and they tell of it twice as much as of any other; a word of several
    languages tells that much less of each.

    Examples
    --------
    >>> guess_language("who pays for the new bridge over the river".split())
    'en'
    >>> guess_language(["climate", "change"]) is None
    True
    """
    counts = dict.fromkeys(STOP_WORDS, 0)
    evidence = dict.fromkeys(STOP_WORDS, 0)
    times = Counter(words)
    letters = sum(number for word, number in times.items() if word.isalpha())
    for word in _LANGUAGES_OF.keys() & times.keys():
        languages, number = _LANGUAGES_OF[word], times[word]
        for language in languages:
            counts[language] += number
            evidence[language] += number * _WORD // len(languages)
    second, first = sorted(evidence, key=evidence.__getitem__)[-2:]
    enough = counts[first] >= max(_FEWEST, _SMALLEST_SHARE * letters)
    return first if enough and evidence[first] >= _LEAD * evidence[second] else None


class Stems:
    """Words of one language (a primary subtag) by their stems.

    Where Snowball has no stemmer for it, no word has forms; nor has a folded word of less than 3
    letters, or with anything but letters.

    Examples
    --------
    >>> stems = Stems("en", ["soup", "university", "party"])
    >>> [stems.forms(word) for word in ("soups", "universities", "universe", "parties")]
    [['soup'], ['university'], [], ['party']]
    """

    __slots__ = ("_by_stem", "_language", "_stemmer")

    def __init__(self, language: str, words: Iterable[str]) -> None:
        import Stemmer  # type: ignore[import-not-found]

        self._language = language
        self._by_stem: dict[str, list[str]] = {}
        self._stemmer: Any = None
        try:
            self._stemmer = Stemmer.Stemmer(language, 0)  # whoever asks has a cache of their own
        except (KeyError, UnicodeEncodeError):
            return
        distinct = [word for word in dict.fromkeys(words) if _has_forms(word)]
        for word, stem in zip(distinct, self._stemmer.stemWords(distinct), strict=True):
            self._by_stem.setdefault(stem, []).append(word)

    def forms(self, word: str) -> list[str]:
        """Return the words that a folded word is another form of."""
        if not self._by_stem or not _has_forms(word):
            return []
        near = self._by_stem.get(self._stemmer.stemWord(word), ())
        return [other for other in near if other != word and self._is_form(word, other)]

    def parts(self, word: str) -> list[str]:
        """Return the words that a German compound ends with and begins with, in any form.

        The longest of each; the words have at least 5 letters. What is left beside one has at
        least 4, with a vowel, and is no function word (*Gegenstand* has no *Stand*).

        Examples
        --------
        >>> stems = Stems("de", ["klima", "politik", "stand", "anlage"])
        >>> [stems.parts(word) for word in ("klimapolitik", "solaranlagen", "gegenstand")]
        [['politik', 'klima'], ['anlage'], []]
        """
        if self._language != "de" or not _has_forms(word):
            return []
        cuts = range(_REST, len(word) - _PART + 1)
        found: dict[str, None] = {}
        for pieces in (
            ((word[cut:], word[:cut]) for cut in cuts),
            ((word[:-cut], word[-cut:]) for cut in cuts),
        ):
            for part, rest in pieces:
                if _is_rest(rest) and (known := self._known(part)):
                    found.update(dict.fromkeys(known))
                    break
        return list(found)

    def _known(self, part: str) -> list[str]:
        near = self._by_stem.get(self._stemmer.stemWord(part), ())
        fit = (one for one in near if one == part or self._is_form(part, one))
        return [one for one in fit if len(one) >= _PART]

    def _is_form(self, one: str, other: str) -> bool:
        endings = _ENDINGS.get(self._language)
        if endings is None:
            return True
        plain, plain_other = _unaccented(one), _unaccented(other)
        pairs = zip(plain, plain_other, strict=False)
        same = next(
            (at for at, (a, b) in enumerate(pairs) if a != b), min(map(len, (plain, plain_other)))
        )
        differ = tuple(sorted((plain[same:], plain_other[same:])))
        if differ in endings:
            return True
        return self._language == "de" and differ in _UMLAUT and one[:same] != other[:same]


def _has_forms(word: str) -> bool:
    return len(word) >= _SHORTEST and word.isalpha()


def _is_rest(rest: str) -> bool:
    """Whether the rest of a compound may be words; *Transport* has no *Sport*."""
    if rest in STOP_WORDS["de"] or rest.endswith(_NO_WORDS):
        return False
    return not _VOWELS.isdisjoint(rest)


def _unaccented(word: str) -> str:
    if word.isascii():
        return word
    letters = unicodedata.normalize("NFD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
