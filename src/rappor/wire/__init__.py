"""One report outside a process. Standard library only."""

from rappor.wire.packing import from_text, pack, to_text, unpack

__all__ = ["from_text", "pack", "to_text", "unpack"]
