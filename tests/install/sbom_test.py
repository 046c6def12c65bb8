#!/usr/bin/env python3
"""The bill of materials that tools/sbom writes for this build is valid SPDX 2.3 and names every library of it.

usage: sbom_test.py CASE --source DIR --build DIR --prefix DIR ...  (as install_test.py)
"""
import hashlib
import json
import re
import subprocess
import sys

import install_test

EXPECTED = {"opmux", "libyaml", "libsodium", "highway", "CLI11", "SQLite"}
# The part of the SPDX JSON rules that needs no library.
REQUIRED = ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages",
            "relationships")
REQUIRED_OF_PACKAGE = ("SPDXID", "name", "downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText")


def check_rules(made):
    assert all(made.get(key) for key in REQUIRED), made.keys()
    assert made["spdxVersion"] == "SPDX-2.3" and made["dataLicense"] == "CC0-1.0"
    assert made["SPDXID"] == "SPDXRef-DOCUMENT"
    assert re.fullmatch(r"https?://[^#\s]+", made["documentNamespace"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["creationInfo"]["created"])
    assert all(re.match(r"(Tool|Person|Organization): ", each) for each in made["creationInfo"]["creators"])
    ids = [package["SPDXID"] for package in made["packages"]]
    assert len(ids) == len(set(ids)), ids
    for package in made["packages"]:
        assert all(package.get(key) for key in REQUIRED_OF_PACKAGE), package
        assert re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", package["SPDXID"]), package
        assert re.match(r"\d", package["versionInfo"]), package
    described = [each for each in made["relationships"] if each["relationshipType"] == "DESCRIBES"]
    assert [each["relatedSpdxElement"] for each in described] == ["SPDXRef-opmux"]
    for each in made["relationships"]:
        assert {each["spdxElementId"], each["relatedSpdxElement"]} <= {*ids, "SPDXRef-DOCUMENT"}, each


def check_with_spdx_tools(path):
    """The validator of the SPDX project, where tools/setup could install it."""
    try:
        from spdx_tools.spdx.parser.parse_anything import parse_file
        from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    except ImportError as missing:
        print(f"checked by the rules of this test only: {missing}")
        return
    problems = validate_full_spdx_document(parse_file(str(path)))
    assert not problems, [problem.validation_message for problem in problems]


def sbom(options):
    tool = options.source / "tools/sbom"
    wheel = options.work / "opmux-0.0.0-cp311-cp311-linux_x86_64.whl"
    wheel.write_bytes(b"not a wheel, but a file with a digest")
    path, again = options.work / "opmux.spdx.json", options.work / "again.spdx.json"
    for output in (path, again):
        install_test.run(sys.executable, "-B", tool, "--wheel", wheel, "--output", output, options.build)
    assert path.read_bytes() == again.read_bytes(), "two runs differ"
    made = json.loads(path.read_text(encoding="utf-8"))
    check_rules(made)
    names = {package["name"] for package in made["packages"]}
    assert EXPECTED <= names, names
    own = made["packages"][0]
    assert own["checksums"][0]["checksumValue"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    for backend, library in (("onednn", "oneDNN"), ("openblas", "OpenBLAS"), ("opencl", "ocl-icd")):
        built = list(options.prefix.rglob(f"libopmux_{backend}.so"))
        assert bool(built) == (library in names), (backend, names)
    check_with_spdx_tools(path)
    refused = subprocess.run([sys.executable, "-B", tool, options.work / "nowhere"], capture_output=True, text=True)
    assert refused.returncode != 0 and "is not a build folder" in refused.stderr, refused


if __name__ == "__main__":
    install_test.main(globals())
