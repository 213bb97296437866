"""How a file is cut into parts."""

from dataclasses import dataclass

from storage.part_uploads import MAX_PARTS

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class PartPlan:
    """Parts of one size but for the last, numbered from 1.

    Attributes:
        size_bytes: of the file, at least 1.
        part_bytes: of every part but the last.
    """

    size_bytes: int
    part_bytes: int

    @property
    def count(self) -> int:
        return -(-self.size_bytes // self.part_bytes)

    @property
    def numbers(self) -> range:
        return range(1, self.count + 1)

    def size_of(self, number: int) -> int:
        """Return the bytes of a part.

        Raises:
            ValueError: there is no such part.
        """
        if number not in self.numbers:
            raise ValueError(f"parts are 1 to {self.count}, got {number}")
        return min(self.part_bytes, self.size_bytes - (number - 1) * self.part_bytes)


def plan_parts(size_bytes: int, *, part_bytes: int) -> PartPlan:
    """Cut a file into parts of ``part_bytes``; into larger ones where those would be too many."""
    least_bytes = -(-size_bytes // MAX_PARTS)
    whole_mib = -(-least_bytes // _MIB) * _MIB
    return PartPlan(size_bytes, max(part_bytes, whole_mib))
