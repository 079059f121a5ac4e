"""The Hugging Face Hub: single files and streamed datasets, and a clear sentence when it is out of reach."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexinvariant.errors import UserError

_TEXT_FIELDS = ("text", "code", "content")


@dataclass(frozen=True)
class ReadyDataset:
    """A dataset under a short name; `files` are read directly where the repository has an obsolete script."""

    name: str
    config: str | None = None
    files: str | None = None


READY_DATASETS = {
    # The Pile without its five subsets that are under copyright; the full one is no longer published.
    "pile": ReadyDataset("monology/pile-uncopyrighted"),
    "wiki40b": ReadyDataset("google/wiki40b", config="en"),
    # `datasets` 4 runs no loading scripts, so the repository's Parquet files are named directly.
    "github": ReadyDataset("codeparrot/github-code-clean", files="data/train-*.parquet"),
}


def _reachable() -> bool:
    """One quick request: the library itself would retry for half a minute before giving up."""
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=10)
    except Exception:  # refused, no name service, offline mode: all the same to the user
        return False
    return True


def fetch_file(repository: str, file: str) -> Path:
    """A file of a model repository, from the local cache or else from the Hub."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        return Path(hf_hub_download(repository, file, local_files_only=True))
    except (LocalEntryNotFoundError, OSError, ValueError):
        pass
    if not _reachable():
        raise UserError(
            f"{repository!r} is neither a local file nor in the cache, and the Hugging Face Hub cannot be "
            f"reached: connect to the network, or name a local {file}"
        )
    try:
        return Path(hf_hub_download(repository, file))
    except RepositoryNotFoundError as error:
        raise UserError(
            f"the Hugging Face Hub has no public repository {repository!r}: "
            "check the name, or log in if it is private"
        ) from error
    except EntryNotFoundError as error:
        raise UserError(
            f"{repository!r} on the Hugging Face Hub has no {file}: choose another repository"
        ) from error
    except Exception as error:  # whatever the network does half-way through
        raise UserError(
            f"fetching {file} of {repository!r} from the Hub failed ({_reason(error)}): try again"
        ) from error


def stream_dataset(
    name: str, config: str | None, split: str, field: str | None
) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """(index, text, record) of every record of a Hub dataset, fetched as they are read.

    Without `field` the text is the first of "text", "code" and "content" that the records have.
    """
    try:
        import datasets
    except ImportError as error:
        raise UserError(
            f"reading hub:{name} needs the `datasets` package: pip install 'lexinvariant[hub]'"
        ) from error
    ready = READY_DATASETS.get(name, ReadyDataset(name))
    config = config or ready.config
    if not _reachable():
        raise UserError(
            f"the Hugging Face Hub cannot be reached, so hub:{name} cannot be read: connect to the network, "
            "or use a local file or 'stdlib'"
        )
    try:
        if ready.files:
            files = f"hf://datasets/{ready.name}/{ready.files}"
            records = datasets.load_dataset("parquet", data_files=files, split=split, streaming=True)
        else:
            records = datasets.load_dataset(ready.name, config, split=split, streaming=True)
        for index, record in enumerate(records):
            column = field or next((name for name in _TEXT_FIELDS if name in record), None)
            if column is None or not isinstance(record.get(column), str):
                raise UserError(
                    f"hub:{name} has no text in {column or 'any of ' + ', '.join(_TEXT_FIELDS)}: "
                    f"name one of its fields ({', '.join(map(str, record))}) with ?field=NAME"
                )
            yield index, record[column], record
    except UserError:
        raise
    except Exception as error:  # wrong name, gated, or the network went away: the library's reasons are many
        raise UserError(
            f"reading hub:{name} (config {config}, split {split}) failed ({_reason(error)}): check the "
            "name and the network, then try again"
        ) from error


def _reason(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0] or type(error).__name__
