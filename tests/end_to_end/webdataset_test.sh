# Tar files as WebDataset has them train as the same files in folders do, bit for bit, whoever reads
# them; what is wrong in one is named, and nothing half made is left.
. tests/end_to_end/common.sh
. "$top/tests/end_to_end/data_jobs.sh"
python3 "$top/tests/end_to_end/make_data.py" . 42
cat >make_tar.py <<'PYTHON'
import glob, io, struct, sys, tarfile
names = sorted(glob.glob("pictures/*/*.png"))
bitmaps = sorted(glob.glob("bitmaps/*/*.bmp"))
labels = [int(line.rsplit(",", 1)[1]) for line in open("table.csv").readlines()[1:]]
raw = open("inputs.npy", "rb").read()
raw = raw[10 + struct.unpack("<H", raw[8:10])[0]:]


def npy(data):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (784,), }"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def make(path, first, last, kind=tarfile.PAX_FORMAT, prefix="", mode="w", change=lambda i, parts: parts):
    with tarfile.open(path, mode, format=kind) as tar:
        folder = tarfile.TarInfo("set")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for i in range(first, last):
            parts = {"png": open(names[i], "rb").read(), "cls": b"%d\n" % labels[i], "seg.npy": npy(raw[i * 3136:i * 3136 + 3136]),
                     "json": b"{}"}
            for part, data in change(i, parts).items():
                member = tarfile.TarInfo(f"set/{prefix}{i:04d}.{part}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


make("s-0.tar", 0, 5, tarfile.USTAR_FORMAT)
make("s-1.tar", 5, 6, tarfile.GNU_FORMAT, prefix="long/" * 40)
make("s-2.tar", 6, 42, prefix="lang-ä/" * 30)
make("b-0.tar", 0, 42, change=lambda i, parts: {"bmp": open(bitmaps[i], "rb").read(), "cls": parts["cls"]})
make("z-0.tar.gz", 0, 20, mode="w:gz")
make("z-1.tar", 20, 42)
make("lacks.tar", 0, 8, change=lambda i, parts: {k: v for k, v in parts.items() if i != 4 or k != "cls"})
make("word.tar", 0, 8, change=lambda i, parts: {**parts, "cls": b"cat"} if i == 4 else parts)
make("other.tar", 0, 8, change=lambda i, parts: {**parts, "png": b"\x89PNG\r\n\x1a\nx"} if i == 4 else parts)
whole = open("s-2.tar", "rb").read()
open("cut.tar", "wb").write(whole[:len(whole) // 2 + 700])
gz = open("z-0.tar.gz", "rb").read()
open("cut.tar.gz", "wb").write(gz[:len(gz) // 2])
open("none.tar", "wb").write(bytes(10240))
open("text.tar", "wb").write(b"no tar at all " * 100)
PYTHON
python3 make_tar.py

job files '{format: npy, inputs: {input: inputs.npy}, labels: labels.npy}' "$one"
expected=$(numbers files)
job png '{format: webdataset, shards: "s-*.tar", inputs: {input: [jpg, png]}, labels: cls, size: 28, channels: 1}' "$one"
job bmp '{format: webdataset, shards: b-0.tar, inputs: {input: [webp, bmp]}, labels: cls, size: 28, channels: 1}' "$one"
job npy '{format: webdataset, shards: [s-0.tar, "s-[12].tar"], inputs: {input: seg.npy}, labels: cls}' "$started" workers
job gz '{format: webdataset, shards: ["z-*.tar.gz", z-1.tar], inputs: {input: png}, labels: cls, size: 28, channels: 1,
  cache: elsewhere}' "$started" workers
for name in png bmp npy gz; do
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name: $found, files have $expected"
    grep -q 'found 42 examples in . tar files' messages || die "$name: it is not told what was found: $(cat messages)"
    found=$(numbers "$name")
    [ "$found" = "$expected" ] || die "$name, once more: $found"
    ! grep -q 'found 42 examples\|unpacked' messages || die "$name: the index is made again"
done
no_halves

# refused CODE PATTERN FILE [INPUT]
refused() {
    job refused "{format: webdataset, shards: '$3', inputs: {input: ${4:-png}}, labels: cls, size: 28, channels: 1}" "$one"
    fails "$1" "$2" "$PENSTOCK" train refused.yaml
    no_halves
}
refused 3 "cannot be read as a tar file: |is cut off: " cut.tar
refused 3 'cut.tar.gz' cut.tar.gz
refused 3 "'.*lacks.tar': the example 'set/0004' has no member 'set/0004.cls'" lacks.tar
refused 3 "the example 'set/0000' has no member 'set/0000.jpg'" lacks.tar jpg
refused 3 "the member 'set/0004.cls' says 'cat', expected the number of a class" word.tar
refused 3 "'.*none.tar' has no examples" none.tar
refused 3 'cannot be read as a tar file' text.tar
refused 3 "no file is called as '.*t-\*.tar' says" 't-*.tar'
refused 3 'no-such.tar' no-such.tar
refused 3 "other.tar, example 4 .counted from 0.': the PNG picture cannot be decoded" other.tar
