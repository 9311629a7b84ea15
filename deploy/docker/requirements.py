"""Print what Potok requires with some extras, one requirement per line: requirements.py pyproject.toml server,kafka"""

import re
import sys
import tomllib


def requirements(path: str, extras: list[str]) -> list[str]:
    with open(path, "rb") as file:
        project = tomllib.load(file)["project"]
    found, wanted = list(project["dependencies"]), [extra for extra in extras if extra]
    for extra in wanted:
        if extra not in project["optional-dependencies"]:
            raise SystemExit(f'there is no extra "{extra}": {", ".join(sorted(project["optional-dependencies"]))}')
        for item in project["optional-dependencies"][extra]:
            own = re.fullmatch(rf"{project['name']}\[(.+)\]", item)
            if own is None:
                found.append(item)
            else:
                wanted += [name for name in own[1].split(",") if name not in wanted]
    return sorted(set(found))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1], sys.argv[2].split(","))))
