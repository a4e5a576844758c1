"""Downloads are checked, archives are kept inside, and nothing of the user's is lost."""

import hashlib
import io
import tarfile

import pytest

from lossforge.data.source import File, checksum_of, download, unpack

CONTENT = b"thirty-two by thirty-two"
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"


@pytest.fixture
def address(served):
    """Where `batch.bin` can be downloaded."""
    folder, url = served
    (folder / "batch.bin").write_bytes(CONTENT)
    return f"{url}/batch.bin"


def test_a_file_is_downloaded_once(tmp_path, address):
    file = File("inside/batch.bin", MD5, address)
    path = download(file, tmp_path / "inside" / "batch.bin")
    assert path == tmp_path / "inside" / "batch.bin"
    assert path.read_bytes() == CONTENT
    before = path.stat().st_mtime_ns
    assert download(file, path) == path
    assert path.stat().st_mtime_ns == before


def test_a_wrong_download_is_not_kept(tmp_path, address):
    file = File("batch.bin", "md5:" + 32 * "0", address)
    with pytest.raises(ValueError, match=32 * "0"):
        download(file, tmp_path / "batch.bin")
    assert not (tmp_path / "batch.bin").exists()
    assert not list(tmp_path.iterdir())


def test_a_file_of_the_users_is_never_replaced(tmp_path, address):
    (tmp_path / "batch.bin").write_bytes(b"mine")
    with pytest.raises(ValueError, match=f"expected {MD5}; move it away"):
        download(File("batch.bin", MD5, address), tmp_path / "batch.bin")
    assert (tmp_path / "batch.bin").read_bytes() == b"mine"


def test_a_failed_download_names_the_address(tmp_path, address):
    path = tmp_path / "absent.bin"
    with pytest.raises(OSError, match=rf"{address}x cannot be downloaded .* yourself as {path}"):
        download(File("absent.bin", MD5, address + "x"), path)


def test_the_checksum_follows_the_named_algorithm(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    assert checksum_of(path, "md5:...") == MD5
    assert checksum_of(path, "sha256:...") == f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def archive(path, *members):
    """A tar archive of (name, content) files and ready TarInfo entries."""
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def device(name):
    info = tarfile.TarInfo(name)
    info.type = tarfile.CHRTYPE
    return info


def test_an_archive_is_unpacked(tmp_path):
    path = archive(tmp_path / "a.tar.gz", ("batches/one", b"1"), ("batches/two", b"2"))
    unpack(path, tmp_path)
    assert (tmp_path / "batches" / "one").read_bytes() == b"1"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.tar.gz", "batches"]


@pytest.mark.parametrize(
    "evil",
    [
        [("../outside", b"x")],
        [("batches/../../outside", b"x")],
        [("/../../outside", b"x"), ("../outside", b"x")],
        [link("door", "../.."), ("door/outside", b"x")],
        [link("door", "/tmp")],
        [link("hard", "../outside", tarfile.LNKTYPE)],
        [device("tty")],
    ],
    ids=[
        "traversal",
        "hidden traversal",
        "absolute",
        "symlink",
        "absolute link",
        "hard link",
        "device",
    ],
)
def test_a_malicious_archive_is_refused(tmp_path, evil):
    target = tmp_path / "inner" / "target"
    target.mkdir(parents=True)
    path = archive(tmp_path / "evil.tar.gz", ("good/one", b"1"), *evil)
    with pytest.raises(ValueError, match=r"evil\.tar\.gz cannot be unpacked"):
        unpack(path, target)
    assert not list(target.iterdir())
    assert sorted(item.name for item in tmp_path.iterdir()) == ["evil.tar.gz", "inner"]


def test_what_is_there_is_not_overwritten(tmp_path):
    path = archive(tmp_path / "a.tar.gz", ("batches/one", b"1"), ("more/two", b"2"))
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "one").write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="batches is there already"):
        unpack(path, tmp_path)
    assert (tmp_path / "batches" / "one").read_bytes() == b"mine"
    assert not (tmp_path / "more").exists()


def test_a_truncated_archive_leaves_nothing(tmp_path):
    path = archive(tmp_path / "a.tar.gz", ("batches/one", bytes(range(256)) * 400))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpack(path, tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["a.tar.gz"]
