# ruff: noqa: RUF001 - Chinese has its own punctuation
"""The words of the sample documents: an invented town's archive, written for this project."""

from typing import Final, TypeAlias

PageText: TypeAlias = tuple[tuple[int, str], ...]
"""Lines of (type size in pt, text) from top to bottom; an empty text is a gap."""

LETTERS: Final[tuple[PageText, ...]] = (
    (
        (20, "Harbor Office of Kestrel Bay"),
        (12, ""),
        (12, "To the keeper of the town archive, 4 March 1911"),
        (12, ""),
        (12, "Dear Sir, the winter storms have opened the roof above the chart room,"),
        (12, "and rain has reached the two lower shelves. We moved forty volumes to"),
        (12, "the customs house before nightfall, and none of them was lost."),
        (12, ""),
        (12, "I ask you to send a binder with blotting paper, and to tell us whether"),
        (12, "the pilot books of 1862 should be copied before they are dried. Their"),
        (12, "ink runs at the slightest touch, and the pages hold together only"),
        (12, "because nobody dares to turn them."),
        (12, ""),
        (12, "With respect, Ada Fenwick, harbor clerk"),
    ),
    (
        (20, "Inventory of the chart room"),
        (12, ""),
        (12, "Shelf 1: pilot books, 1858 to 1870, twelve volumes, damp"),
        (12, "Shelf 2: ships' registers, 1871 to 1884, nine volumes, sound"),
        (12, "Shelf 3: tide tables, 1849 to 1910, sixty-two leaves, torn"),
        (12, "Shelf 4: letters of the lighthouse, 1866 to 1902, one box"),
        (12, "Shelf 5: receipts for coal and rope, 1880 to 1899, three boxes"),
        (12, "Shelf 6: plans of the inner mole, 1874, seven sheets, faded"),
        (12, "Shelf 7: crew lists, 1890 to 1909, twenty volumes, sound"),
        (12, ""),
        (12, "Total: 41 volumes, 62 leaves, 7 sheets and 4 boxes"),
    ),
    (
        (20, "Answer of the town archive"),
        (12, ""),
        (12, "Kestrel Bay, 9 March 1911"),
        (12, ""),
        (12, "Dear Miss Fenwick, the binder leaves by the morning coach with eight"),
        (12, "reams of paper and a press. Please dry nothing near the stove: warm"),
        (12, "air bends the boards, and bent boards break the sewing."),
        (12, ""),
        (12, "The pilot books are to be copied first. Number every leaf in pencil,"),
        (12, "and write on a card what you cannot read, so that those who come"),
        (12, "after us will know what was already gone in our time."),
        (12, ""),
        (12, "Yours faithfully, Tobias Renn, archivist"),
    ),
)

SCANS: Final[tuple[PageText, ...]] = (
    *LETTERS,
    (
        (20, "Diary of the drying"),
        (12, ""),
        (12, "10 March: eleven volumes opened, fans of card between the leaves."),
        (12, "12 March: volume 1862 separated down to leaf 88. Two leaves lost."),
        (12, "15 March: the press is full. Rope lists wait in the customs house."),
        (12, "21 March: all pilot books dry. Copying begins with the north channel."),
        (12, "30 March: 212 leaves copied, 9 cards written for unreadable places."),
    ),
)

CHINESE: Final[tuple[PageText, ...]] = (
    (
        (22, "港口档案目录"),
        (16, ""),
        (16, "第一架：航海日志，共十二册，受潮。"),
        (16, "第二架：船舶登记簿，共九册，完好。"),
        (16, "第三架：潮汐表，共六十二页，破损。"),
        (16, "第四架：灯塔来信，一箱，已编号。"),
        (16, "请先抄写航海日志，再整理其余文件。"),
        (16, "一九一一年三月九日，档案馆。"),
    ),
)

REGISTER: Final[tuple[PageText, ...]] = tuple(
    (
        (20, f"Register of arrivals, sheet {sheet}"),
        (14, ""),
        *((14, f"{day} April 1911: {ship}, {cargo}") for day, ship, cargo in arrivals),
    )
    for sheet, arrivals in enumerate(
        (
            ((1, "brig Amaranth", "salt and oak staves"), (2, "barge Lotte", "bricks")),
            ((3, "schooner Heron", "coal"), (5, "cutter Swift", "mail, two passengers")),
            ((8, "bark Meridian", "wool"), (9, "tug Hercules", "in ballast")),
        ),
        start=1,
    )
)

LABEL: Final[tuple[PageText, ...]] = (
    (
        (18, "Box 17, folder 4"),
        (12, "Letters of the lighthouse keeper"),
        (12, "January to June 1887, 46 leaves"),
        (12, "Do not expose to light"),
    ),
)

TYPED_NOTE: Final = "A plain text, whatever its name says. Nothing in here is a PDF.\n"

_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"


def make_word(index: int) -> str:
    """Return a four-letter word that can be spoken, a different one up to index 4,899."""
    letters = []
    # There are 14 x 5 x 14 x 5 words. A step that shares no factor with that number visits each
    # once, and makes neighbors look different.
    rest = index * 1_789 % 4_900
    for alphabet in (_CONSONANTS, _VOWELS, _CONSONANTS, _VOWELS):
        rest, place = divmod(rest, len(alphabet))
        letters.append(alphabet[place])
    return "".join(letters)
