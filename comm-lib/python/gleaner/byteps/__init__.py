"""BytePS's names for Gleaner: gleaner.byteps.torch has the functions of byteps.torch (docs/compatibility.md)."""
