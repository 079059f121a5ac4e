"""Folders on an object store, through fsspec: s3://, gs://, and whatever else it has a package for.

An object store has neither rename nor lock, so work is done in local folders, which are copied:

    URL/files/NAME/SHA256    the files; what is once there never changes
    URL/contents.json        name, size and hash of every file: what the folder holds
    URL/lease.json           who writes to it, while somebody does

contents.json is written after all that it names, in one request, and what it no longer names is deleted after that. So
whoever reads it finds one whole folder, the old or the new, at whatever moment a writer was killed; and what arrives is
compared with its hash.
"""

from lexinvariant.remote.cache import cache_folder, cache_name
from lexinvariant.remote.copies import local_copy, uploaded
from lexinvariant.remote.folder import (
    Contents,
    DamagedFileError,
    FileEntry,
    RemoteFolder,
    StoreError,
    describe,
    is_remote,
)
from lexinvariant.remote.lease import Lease

__all__ = [
    "Contents",
    "DamagedFileError",
    "FileEntry",
    "Lease",
    "RemoteFolder",
    "StoreError",
    "cache_folder",
    "cache_name",
    "describe",
    "is_remote",
    "local_copy",
    "uploaded",
]
