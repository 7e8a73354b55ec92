"""Looks at the manifests of examples/kubernetes: they fit each other, the Dockerfile, and the settings that
they carry, which the binary (first argument) reads as a pod would. Needs PyYAML."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

binary = sys.argv[1]
documents = {}
for file in sorted(pathlib.Path("examples/kubernetes").glob("*.yaml")):
    for document in yaml.safe_load_all(file.read_text()):
        documents[document["kind"], document["metadata"]["name"]] = document


def expect(condition, said):
    if not condition:
        sys.exit(f"examples/kubernetes: {said}")


deployment = documents["Deployment", "wirephoto"]["spec"]
pod = deployment["template"]["spec"]
(container,) = pod["containers"]
labels = deployment["template"]["metadata"]["labels"]

# Everything that selects pods selects these.
selectors = {
    "Deployment": deployment["selector"]["matchLabels"],
    "Service": documents["Service", "wirephoto"]["spec"]["selector"],
    "headless Service": documents["Service", "wirephoto-nodes"]["spec"]["selector"],
    "PodDisruptionBudget": documents["PodDisruptionBudget", "wirephoto"]["spec"]["selector"]["matchLabels"],
    "NetworkPolicy": documents["NetworkPolicy", "wirephoto"]["spec"]["podSelector"]["matchLabels"],
}
for name, selector in selectors.items():
    expect(selector and selector.items() <= labels.items(), f"the {name} selects {selector}")

# Files and variables come from what is there.
keys = set(documents["Secret", "wirephoto"]["stringData"])
for variable in container.get("env", []):
    source = variable["valueFrom"]["secretKeyRef"]
    expect(("Secret", source["name"]) in documents and source["key"] in keys, f"{variable['name']} has no source")
volumes = {volume["name"]: volume for volume in pod["volumes"]}
mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in container["volumeMounts"]}
expect("secret" in mounts["/run/secrets/wirephoto"], "no secrets at /run/secrets/wirephoto")
expect("configMap" in mounts[container["workingDir"]], "no settings in the working directory")
writable = {path for path, volume in mounts.items() if "emptyDir" in volume}

# The user and the ports of the image.
dockerfile = pathlib.Path("Dockerfile").read_text()
user = re.search(r"^USER (\d+):(\d+)$", dockerfile, re.MULTILINE)
context = pod["securityContext"]
ids = (context["runAsUser"], context["runAsGroup"])
expect(ids == (int(user[1]), int(user[2])), f"it runs as {ids}, the image as {user[0]}")
expect(context["runAsNonRoot"] and context["seccompProfile"]["type"] == "RuntimeDefault", "rights of the pod")
rights = container["securityContext"]
expect(rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"], "rights of the container")
expect(rights["capabilities"] == {"drop": ["ALL"]}, "capabilities")

# The settings, as the pod has them: the variables of the image and of the pod, and the file.
image = dict(re.findall(r"(WIREPHOTO_\w+)=(\S+)", dockerfile))
expect(image, "the image has no settings")
given = {variable["name"]: "not a real one" for variable in container.get("env", [])}
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "wirephoto.toml")
    file.write_text(documents["ConfigMap", "wirephoto"]["data"][file.name])
    environment = {"PATH": os.environ["PATH"], **image, **given}
    said = subprocess.run(
        [binary, "config", "--json"], cwd=folder, env=environment, capture_output=True, text=True
    )
expect(said.returncode == 0, said.stderr)
settings = {row["name"]: row["value"] for row in json.loads(said.stdout)}
ports = {port["name"]: port["containerPort"] for port in container["ports"]}
for name, setting in {"http": "server.listen", "admin": "server.admin_listen"}.items():
    expect(settings[setting] == f"0.0.0.0:{ports[name]}", f"{setting} is {settings[setting]}")
expect(settings["data.dir"] in writable and "/tmp" in writable, f"it writes to {writable}")
for setting in ("secrets.key_file", *(name for name in settings if name.startswith(("database.", "store.")))):
    for path in re.findall(r"/run/secrets/[\w./-]+", str(settings[setting])):
        folder, _, name = path.rpartition("/")
        expect("secret" in mounts.get(folder, {}) and name in keys, f"{setting}: {path} is not mounted")
expect(settings["server.public_url"].startswith("https://") and settings["server.trusted_proxies"], "addresses")

# A pod that stops has the time that the service takes; one that starts has that of the unit.
grace = pod["terminationGracePeriodSeconds"]
stop = int(settings["server.unready_s"]) + int(settings["server.drain_s"])
expect(grace > stop + 10, f"a stop takes {stop} s, the pod has {grace}")
ready = container["readinessProbe"]
unready = ready["periodSeconds"] * ready["failureThreshold"]
expect(int(settings["server.unready_s"]) > unready, f"a pod is taken out after {unready} s")
startup = container["startupProbe"]
seconds = startup["periodSeconds"] * startup["failureThreshold"]
unit = pathlib.Path("packaging/wirephoto.service").read_text()
unit = re.search(r"^TimeoutStartSec=(\d+)$", unit, re.MULTILINE)
expect(unit and seconds == int(unit[1]), f"a start may take {seconds} s")
for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
    expect(container[probe]["httpGet"]["port"] == "admin", f"the {probe} asks the public's port")

# Room: what the settings let the service take.
units = {"Gi": 2**30}
size = lambda text: int(text[:-2]) * units[text[-2:]]
data = size(mounts[settings["data.dir"]]["emptyDir"]["sizeLimit"])
expect(data > int(settings["cache.disk_bytes"]) + int(settings["store.side_files_bytes"]), "room for the cache")
memory = sum(int(settings[name]) for name in (
    "cache.memory_bytes", "search.memory_bytes", "media.memory_bytes", "media.program_memory_bytes",
    "ingest.memory_bytes"))
limit = size(container["resources"]["limits"]["memory"])
expect(limit > memory + 2**30, f"{memory} bytes of caches and work in {limit}")

# Probes, scrapes and requests come through.
policy = documents["NetworkPolicy", "wirephoto"]["spec"]
let_in = {port["port"] for rule in policy["ingress"] for port in rule["ports"]}
expect(let_in == set(ports), f"the NetworkPolicy lets in {let_in}")
let_out = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
expect({53, 5432, 443, int(settings["mail.port"])} <= let_out, f"the NetworkPolicy lets out {let_out}")
expect(deployment["replicas"] >= 2, "one replica only")
print(f"Kubernetes: {len(documents)} manifests fit each other, the image and the settings")
