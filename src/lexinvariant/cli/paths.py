"""Paths on the command line: they are local, and an address such as s3://bucket/mine is told to be none."""

from pathlib import Path

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from lexinvariant.errors import UserError
from lexinvariant.files import check_name
from lexinvariant.remote import is_remote

LOCAL_PATHS = ConstructorRegistry()
"""Within, `tyro.cli` takes no address for an option that is a Path; options that may be addresses are strings."""


def local_path(place: str) -> Path:
    """An address, taken for a path, would be a folder called "s3:"."""
    if is_remote(place):
        raise UserError(
            f"{place} is an address, but this takes a path on this machine: give one (addresses are for what `train`, "
            "`data prepare` and `export` write, and for data and models that are read)."
        )
    return Path(check_name(place))


@LOCAL_PATHS.primitive_rule
def _construct(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Path] | None:
    if info.type is not Path:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="PATH",
        instance_from_str=lambda words: local_path(words[0]),
        is_instance=lambda value: isinstance(value, Path),
        str_from_instance=lambda path: [str(path)],
    )
