# ruff: noqa: PTH102, PTH105, PTH108, PTH116, RUF071 - it stands in for os, and compares bytes
"""A disk that loses power: records what is done to it, and tells every state it may be left in.

`Recording` stands in for ``os`` in `infrastructure.jsonl.disk`. What it has seen is a list of
operations on inodes and folders; `states` plays a prefix of them and yields what may be on the disk
if the power fails right then:

* bytes that were not synced: missing, torn anywhere, or zero-filled where they should be;
* a cut that was not synced: done or not, also when the file has grown again since;
* names (created, renamed, removed) whose folder was not synced: there or not, up to any of them.

Whatever was synced is there in every state.
"""

import os
from dataclasses import dataclass, field

FEW = 400
"""A write of at most so many bytes is torn at every byte; a longer one at about as many places."""

MIXED = 4
"""How many states by chance are tried after each operation, besides all the systematic ones."""


class Recording:
    """``os``, with a list of what is changed below *folder*."""

    def __init__(self, folder):
        self.operations = []
        self._folder = os.fspath(folder)
        self._names = {}

    def __getattr__(self, name):
        return getattr(os, name)

    def _note(self, *operation):
        self.operations.append(operation)

    def _key(self, fd):
        status = os.fstat(fd)
        return status.st_dev, status.st_ino

    def _is_ours(self, path):
        return os.fspath(path).startswith(self._folder)

    def open(self, path, flags, mode=0o777):
        fd = os.open(path, flags, mode)
        if flags & os.O_CREAT and self._is_ours(path):
            self._note("create", os.fspath(path), self._key(fd))
        return fd

    def write(self, fd, data):
        written = os.write(fd, data)
        self._note("write", self._key(fd), bytes(data[:written]))
        return written

    def ftruncate(self, fd, size):
        os.ftruncate(fd, size)
        self._note("truncate", self._key(fd), size)

    def fsync(self, fd):
        os.fsync(fd)
        self._note("sync", self._key(fd))

    def fdatasync(self, fd):
        os.fdatasync(fd)
        self._note("sync", self._key(fd))

    def mkdir(self, path, mode=0o777):
        os.mkdir(path, mode)
        status = os.stat(path)
        self._note("mkdir", os.fspath(path), (status.st_dev, status.st_ino))

    def replace(self, source, target):
        os.replace(source, target)
        self._note("rename", os.fspath(source), os.fspath(target))

    def unlink(self, path):
        os.unlink(path)
        self._note("remove", os.fspath(path))


@dataclass
class _File:
    synced: bytes = b""
    content: bytes = b""
    cut: list = field(default_factory=list)  # what it was before each cut since the last sync

    def uncut(self):
        """What it may be if a cut was not done: the old end, under what was written since."""
        return [self.content + before[len(self.content) :] for before in self.cut] + self.cut


@dataclass
class _Folder:
    path: str
    synced: dict = field(default_factory=dict)
    pending: list = field(default_factory=list)  # (name, inode or None), in order

    def names(self, steps):
        names = dict(self.synced)
        for name, inode in self.pending[:steps]:
            names.pop(name, None) if inode is None else names.__setitem__(name, inode)
        return names


class Disk:
    """Inodes and folders, and what of them is safe."""

    def __init__(self, root):
        """Begin with what is in *root*: it is safe."""
        self.inodes = {}
        self.root_key = self._known(root)

    def _known(self, path):
        status = path.stat()
        key = status.st_dev, status.st_ino
        if path.is_dir():
            self.inodes[key] = _Folder(os.fspath(path))
            self.inodes[key].synced = {child.name: self._known(child) for child in path.iterdir()}
        else:
            self.inodes[key] = _File(path.read_bytes(), path.read_bytes())
        return key

    def play(self, operation):
        match operation:
            case ("create", path, key):
                self.inodes[key] = _File()
                self._name(path, key)
            case ("mkdir", path, key):
                self.inodes[key] = _Folder(path)
                self._name(path, key)
            case ("write", key, data):
                self.inodes[key].content += data
            case ("truncate", key, size):
                file = self.inodes[key]
                file.cut.append(file.content)
                file.content = file.content[:size]
            case ("sync", key):
                self._sync(self.inodes[key])
            case ("rename", source, target):
                key = self._find(source)
                self._name(target, key)
                self._name(source, None)
            case ("remove", path):
                self._name(path, None)

    def _sync(self, inode):
        if isinstance(inode, _File):
            inode.synced, inode.cut = inode.content, []
        else:
            inode.synced, inode.pending = inode.names(None), []

    def _folder_of(self, path):
        parent, name = os.path.split(path)
        folder = next(
            a for a in self.inodes.values() if isinstance(a, _Folder) and a.path == parent
        )
        return folder, name

    def _find(self, path):
        folder, name = self._folder_of(path)
        return folder.names(None)[name]

    def _name(self, path, key):
        folder, name = self._folder_of(path)
        folder.pending.append((name, key))

    # -- states ----------------------------------------------------------------------------------

    def states(self, operation, chance):
        """Play *operation*, and yield every state right after it that was not one before.

        A state is a dict from relative paths to bytes, or None for a folder. What the operation
        wrote is torn everywhere; what older ones left unsynced is chosen by *chance* (a `Random`).
        """
        key = operation[1] if operation[0] in ("write", "truncate") else None
        before = self.inodes[key].content if key else b""
        self.play(operation)
        namings = list(self._namings())
        for names in namings:
            for content in (self._full(), self._least(), *self._with_a_cut_undone()):
                yield self._materialised(content, names)
        if key:
            for left in _torn(before, self.inodes[key].content):
                others = chance.choice([self._full, self._least, lambda: self._mixed(chance)])()
                yield self._materialised({**others, key: left}, namings[0])
        for _ in range(MIXED):
            yield self._materialised(self._mixed(chance), chance.choice(namings))

    def _files(self):
        return {key: file for key, file in self.inodes.items() if isinstance(file, _File)}

    def _full(self):
        return {key: file.content for key, file in self._files().items()}

    def _least(self):
        return {key: file.synced for key, file in self._files().items()}

    def _with_a_cut_undone(self):
        for key, file in self._files().items():
            for content in file.uncut():
                yield {**self._full(), key: content}

    def _mixed(self, chance):
        mixed = {}
        for key, file in self._files().items():
            left = [file.content, file.synced, *file.uncut()]
            left += [chance.choice(list(_torn(file.synced, before))) for before in file.cut]
            if file.content != file.synced:
                left += chance.sample(list(_torn(file.synced, file.content)), 1)
            mixed[key] = chance.choice(left)
        return mixed

    def _namings(self):
        """Yield how many of its changes of names each folder has kept; first, all of them."""
        folders = {k: a for k, a in self.inodes.items() if isinstance(a, _Folder)}
        nothing = dict.fromkeys(folders, 0)
        everything = {key: len(folder.pending) for key, folder in folders.items()}
        yield everything
        if everything != nothing:
            yield nothing
        for key, folder in folders.items():
            for steps in range(len(folder.pending)):
                yield {**everything, key: steps}

    def _materialised(self, content, named):
        found = {}

        def walk(key, path):
            inode = self.inodes[key]
            if isinstance(inode, _File):
                found[path] = content[key]
                return
            if path:
                found[path] = None
            for name, child in sorted(inode.names(named[key]).items()):
                walk(child, f"{path}/{name}" if path else name)

        walk(self.root_key, "")
        return found


def _torn(synced, content):
    """Yield what may be left of *content* when only *synced* is safe."""
    start = len(os.path.commonprefix([synced, content]))
    if start == len(content):  # it was cut
        yield synced
        return
    step = (len(content) - start) // FEW + 1
    places = range(start, len(content) + 1, step)
    for place in places:
        yield content[:place]
    for place in places[::8]:
        yield content[:place] + b"\0" * (len(content) - place)  # the size was written, not all data
        yield content[:start] + b"\0" * (place - start) + content[place:]
        middle = content[place : place + 16]
        yield content[:place] + b"\0" * len(middle) + content[place + len(middle) :]


def write_out(state, folder):
    """Make *state* on a real disk."""
    for name, data in state.items():
        path = folder / name
        if data is None:
            path.mkdir(mode=0o700)
        else:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(fd, data)
            os.close(fd)
