"""The suite's servers: the product's own choice of one, and one that can be killed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping

from pytest_surrecall._servers import IMAGE, PASSWORD, USER, Server, wait


class Killable:
    """A server of one's own on its own volume, that can be killed and started again at the same address."""

    def __init__(self, kind: str, environment: Mapping[str, str] = os.environ) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.server = Server(kind, f"ws://127.0.0.1:{port}", USER, PASSWORD)
        self._folder = tempfile.mkdtemp(prefix="surrecall-tests-")
        login = ["start", "--user", USER, "--pass", PASSWORD]
        if kind == "container":
            image = environment.get("SURRECALL_TEST_IMAGE", IMAGE)
            self._name = f"surrecall-tests-{port}"
            self._docker("run", "--detach", "--name", self._name, "--user", "0", "--publish", f"127.0.0.1:{port}:8000",
                         image, *login, "--bind", "0.0.0.0:8000", "surrealkv:///data/tests")  # fmt: skip
        else:
            path = environment.get("SURREAL_BINARY") or shutil.which("surreal", path=environment.get("PATH")) or "surreal"
            self._command = [path, *login, "--bind", f"127.0.0.1:{port}", "--no-banner", f"surrealkv://{self._folder}/tests"]
            self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait(self.server)

    def kill(self) -> None:
        """SIGKILL, so nothing is flushed or said goodbye to."""
        if self.server.kind == "container":
            self._docker("kill", self._name)
        else:
            self._process.kill()
            self._process.wait()

    def start(self) -> None:
        """Again, on the same volume."""
        if self.server.kind == "container":
            self._docker("start", self._name)
        else:
            self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait(self.server)

    def remove(self) -> None:
        if self.server.kind == "container":
            self._docker("rm", "--force", "--volumes", self._name)
        else:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _docker(*arguments: str) -> None:
        subprocess.run(["docker", *arguments], check=True, capture_output=True, timeout=60)
