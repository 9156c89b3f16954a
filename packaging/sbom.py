#!/usr/bin/python3
"""Writes what Penstock is linked to and loads, and what these need, in SPDX 2.3 (JSON).

  sbom.py PENSTOCK LIBRARY VERSION DATE FILE     DATE: seconds since 1970
"""
import datetime
import hashlib
import json
import pathlib
import re
import sys

import linked


def describe(name, path, licence):
    """A package of Debian, by the library that is taken of it."""
    package = linked.package_of(path)
    url = f"pkg:deb/debian/{package['name']}@{package['version'].replace('+', '%2B').replace(':', '%3A')}"
    return {
        "SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": package["name"], "versionInfo": package["version"], "supplier": "Organization: Debian",
        "packageFileName": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "checksums": [{"algorithm": "SHA256", "checksumValue": hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()}],
        "licenseConcluded": "NOASSERTION", "licenseDeclared": licence or "NOASSERTION",
        "licenseComments": f"The whole text is in {package['copyright']}", "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"{url}?arch={package['architecture']}"}],
    }


def collect(programs):
    """Descriptions and paths by library, and which needs which: (who, how, whom)."""
    files, relations = {}, []
    for program in programs:
        files.update(linked.needed(program))
    own = sorted({name for program in programs for name in linked.direct(program) if name in files})
    opened = {pathlib.Path(path).name: path for path in linked.loaded()}
    for path in opened.values():
        files.update(linked.needed(path))
    files.update(opened)
    unknown = [name for name in [*own, *sorted(opened)] if linked.licence_of(name) is None]
    if unknown:
        sys.exit(f"sbom.py: docs/licences.md says nothing of {', '.join(unknown)}")
    packages = {name: describe(name, path, linked.licence_of(name)) for name, path in sorted(files.items())}
    mine = "SPDXRef-penstock"
    relations += [(mine, "DYNAMIC_LINK", packages[name]["SPDXID"]) for name in own]
    relations += [(packages[name]["SPDXID"], "OPTIONAL_COMPONENT_OF", mine) for name in sorted(opened)]
    for name, path in sorted(files.items()):
        relations += [(packages[name]["SPDXID"], "DEPENDS_ON", packages[other]["SPDXID"])
                      for other in sorted(linked.direct(path)) if other in packages]
    return packages, files, relations


def write(programs, version, date, out):
    packages, paths, relations = collect(programs)
    penstock = {"SPDXID": "SPDXRef-penstock", "name": "penstock", "versionInfo": version,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
                "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION"}
    listed = [penstock, *packages.values()]
    digest = hashlib.sha256(json.dumps([listed, relations]).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(int(date), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"penstock-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/penstock-{version}-{digest[:32]}",
        "creationInfo": {"created": created, "creators": [f"Tool: penstock-sbom-{version}"]},
        "packages": listed,
        "relationships": [{"spdxElementId": who, "relationshipType": how, "relatedSpdxElement": whom}
                          for who, how, whom in [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-penstock"), *relations]],
    }
    pathlib.Path(out).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return {name: {**package, "path": pathlib.Path(paths[name])} for name, package in packages.items()}


if __name__ == "__main__":
    found = write(sys.argv[1:3], sys.argv[3], sys.argv[4], sys.argv[5])
    print(f"{sys.argv[5]}: {len(found)} libraries of {len({p['name'] for p in found.values()})} packages")
