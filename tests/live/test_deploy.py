"""What deploy/ holds fits what `serve` tells, as far as that can be seen without a cluster."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import harness
import pytest
import yaml
from live_helpers import needs

DEPLOY = harness.ROOT / "deploy"
SOURCE = (harness.ROOT / "src" / "serve" / "metric_families.cc").read_text()
# What is told of every sum or host alike is a gauge, and its kind is said once for all of them.
FAMILIES = re.findall(r'(?:family|host)\(\s*"(gpumemprof_\w+)",\s*(?:"(\w+)")?', SOURCE)
TOLD = {name + ("_total" if kind == "counter" else "") for name, kind in FAMILIES}


def metrics_in(text):
    return set(re.findall(r"\bgpumemprof_\w+", text))


DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
GRAFANA = harness.ROOT / "build" / "grafana" / "package" / "dist" / "types"
COMPILER = harness.ROOT / "web" / "node_modules" / ".bin" / "tsc"


def expressions():
    panels = [panel for path in DASHBOARDS for panel in json.loads(path.read_text())["panels"]]
    return [target["expr"] for panel in panels for target in panel["targets"]]


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False, **options)


def test_the_page_names_every_metric():
    page = (harness.ROOT / "docs" / "commands" / "serve.md").read_text()
    ends = re.findall(r"`…(_\w+)`", page)
    missing = [name for name in TOLD if f"`{name}`" not in page and not any(name.endswith(end) for end in ends)]
    assert len(TOLD) > 20 and not missing


def test_rules_and_dashboard_use_metrics_that_are_told():
    rules = (DEPLOY / "prometheus" / "gpumemprof-alerts.yaml").read_text()
    assert metrics_in(rules) <= TOLD
    assert metrics_in(" ".join(expressions())) <= TOLD and len(expressions()) >= 40


def test_promtool_takes_the_rules_and_raises_what_it_must():
    promtool = needs("promtool")
    checked = run(promtool, "check", "rules", DEPLOY / "prometheus" / "gpumemprof-alerts.yaml")
    assert checked.returncode == 0 and "7 rules found" in checked.stdout, checked
    tried = run(promtool, "test", "rules", "rules_test.yaml", cwd=harness.ROOT / "tests" / "live")
    assert tried.returncode == 0, tried


@pytest.mark.parametrize("name", ["scrape.yaml", "scrape-kubernetes.yaml"])
def test_promtool_takes_the_scrape_configuration(name):
    checked = run(needs("promtool"), "check", "config", "--syntax-only", DEPLOY / "prometheus" / name)
    if "field kubernetes_sd_configs not found" in checked.stderr:
        pytest.skip("Debian's promtool is built without Kubernetes")
    assert checked.returncode == 0, checked


def test_prometheus_finds_the_daemonset_s_pods_and_sends_the_token():
    (wanted,) = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text())["scrape_configs"]
    (job,) = yaml.safe_load((DEPLOY / "prometheus" / "scrape-kubernetes.yaml").read_text())["scrape_configs"]
    assert (job["job_name"], job["authorization"]) == (wanted["job_name"], wanted["authorization"])
    assert f'up{{job="{job["job_name"]}"}}' in (DEPLOY / "prometheus" / "gpumemprof-alerts.yaml").read_text()
    (daemonset,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "daemonset.yaml").read_text())
    pod = daemonset["spec"]["template"]
    assert "annotations" not in pod["metadata"], "discovery by prometheus.io/scrape sends no token"
    (found,) = job["kubernetes_sd_configs"]
    key, _, value = found["selectors"][0]["label"].partition("=")
    assert found["role"] == "pod" and pod["metadata"]["labels"][key] == value
    (port,) = pod["spec"]["containers"][0]["ports"]
    kept = [rule for rule in job["relabel_configs"] if rule.get("action") == "keep"]
    assert [(rule["source_labels"], rule["regex"]) for rule in kept] == [(["__meta_kubernetes_pod_container_port_name"], port["name"])]


def test_the_collector_scrapes_what_prometheus_scrapes():
    text = (DEPLOY / "opentelemetry" / "collector.yaml").read_text()
    scraped = yaml.safe_load(text)["receivers"]["prometheus"]["config"]["scrape_configs"]
    wanted = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text())["scrape_configs"]
    assert [{**job, "scrape_interval": None} for job in scraped] == [{**job, "scrape_interval": None} for job in wanted]


def test_alloy_and_parca_scrape_profiles_where_prometheus_scrapes_metrics():
    (wanted,) = yaml.safe_load((DEPLOY / "prometheus" / "scrape.yaml").read_text())["scrape_configs"]
    (parca,) = yaml.safe_load((DEPLOY / "parca" / "parca.yaml").read_text())["scrape_configs"]
    for key in ("job_name", "authorization", "static_configs"):
        assert parca[key] == wanted[key]
    alloy = (DEPLOY / "pyroscope" / "config.alloy").read_text()
    (target,) = wanted["static_configs"][0]["targets"]
    assert f'"__address__" = "{target}"' in alloy and wanted["authorization"]["credentials_file"] in alloy
    answers = (harness.ROOT / "src" / "serve" / "service.cc").read_text()
    path = parca["profiling_config"]["pprof_config"]["gpu"]["path"]
    assert f'"{path}"' in answers and f'"{path}"' in alloy


def test_promtool_takes_every_expression_of_the_dashboard(tmp_path):
    promtool = needs("promtool")
    values = {"$__range": "1h", "$__rate_interval": "1m", "$instance": ".*", "$program": ".*"}
    rules = []
    for number, expression in enumerate(expressions()):
        for name, value in values.items():
            expression = expression.replace(name, value)
        rules.append({"record": f"panel:{number}", "expr": expression})
    # JSON is YAML.
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = run(promtool, "check", "rules", tmp_path / "rules.yaml")
    assert checked.returncode == 0, checked


def test_dashboards_are_told_apart():
    said = [json.loads(path.read_text()) for path in DASHBOARDS]
    assert len(said) == 3 and len({board["uid"] for board in said}) == len({board["title"] for board in said}) == 3


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_grafanas_own_schema_takes_the_dashboard(path, tmp_path):
    """Its types, as their compiler checks a literal: a field that there is not, or of another type, is an error."""
    if not GRAFANA.exists() or not COMPILER.exists():
        pytest.skip("Grafana's schema or the compiler is not installed: scripts/setup live web-tests")
    (tmp_path / "schema").symlink_to(GRAFANA)
    head = "import type { Dashboard } from './schema/raw/dashboard/x/types.gen';\nexport const board: Dashboard = "

    def errors(text):
        (tmp_path / "board.ts").write_text(head + text)
        checked = run(COMPILER, "--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler", "--module", "esnext",
                      tmp_path / "board.ts", timeout=120)
        return checked.stdout if checked.returncode else ""

    text = path.read_text()
    assert errors(text) == ""
    assert "titel" in errors(text.replace('"title":', '"titel":', 1))
    assert "gridPos" in errors(text.replace('"x": 0', '"x": "0"', 1)) or "number" in errors(text.replace('"x": 0', '"x": "0"', 1))


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_do_not_lie_over_each_other(path):
    dashboard = json.loads(path.read_text())
    taken = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


def test_systemd_takes_the_unit(tmp_path):
    analyze = needs("systemd-analyze")
    text = (DEPLOY / "systemd" / "gpumemprof.service").read_text()
    unit = tmp_path / "gpumemprof.service"
    unit.write_text(text.replace("/usr/local/bin/gpumemprof", harness.COMMAND))
    checked = run(analyze, "verify", "--man=no", unit)
    assert not [line for line in checked.stderr.splitlines() if "gpumemprof.service" in line], checked


@pytest.mark.parametrize("path", ["systemd/gpumemprof.service", "container/Containerfile", "kubernetes/daemonset.yaml"])
def test_options_in_the_files_exist(path):
    shown = harness.execute([harness.COMMAND, "serve", "--help"]).ok().stdout.decode()
    text = (DEPLOY / path).read_text()
    used = set(re.findall(r"(?<![\w-])--(?:listen|token[\w-]*)", text))
    assert "--listen" in used and all(option in shown for option in used)


@pytest.mark.parametrize("version", ["1.25", "1.29", "1.33", "1.37"])
def test_kubernetes_own_schemas_take_the_recorded_job(version):
    schemas = pytest.importorskip("kubernetes_validate")
    (job,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "recorded-job.yaml").read_text())
    schemas.validate(job, version, strict=True)
    pod = job["spec"]["template"]["spec"]
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    # The same folder of the node as that of the DaemonSet.
    (daemonset,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "daemonset.yaml").read_text())
    (follows,) = daemonset["spec"]["template"]["spec"]["volumes"]
    assert follows in pod["volumes"]


@pytest.mark.parametrize("path", sorted((DEPLOY / "slurm").glob("*.sbatch")), ids=lambda path: path.stem)
def test_a_slurm_script_is_bash_and_records(path, tmp_path):
    """With stand-ins for srun and scontrol, and for torchrun one that starts a program that allocates nothing."""
    (tmp_path / "bin").mkdir()
    for name, text in {"srun": 'exec "$@"', "scontrol": "echo localhost", "torchrun": f"exec {sys.executable} -c 'print(1)'",
                       "python": f"exec {sys.executable} -c 'print(1)'"}.items():  # fmt: skip
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    path_of = f"{tmp_path / 'bin'}:{Path(harness.COMMAND).parent}:{os.environ['PATH']}"
    slurm = {"SUBMIT_DIR": str(tmp_path), "JOB_ID": "7", "NNODES": "1", "JOB_NODELIST": "localhost", "PROCID": "0", "LOCALID": "0", "NTASKS": "1"}
    env = {**os.environ, "PATH": path_of, **{f"SLURM_{name}": value for name, value in slurm.items()}}
    done = run("bash", "-eu", path, env=env, timeout=60)
    assert (done.returncode, done.stdout) == (0, "1\n"), done
    assert (tmp_path / "train-7" / "meta.json").exists()


@pytest.mark.parametrize("version", ["1.25", "1.29", "1.33", "1.37"])
def test_kubernetes_own_schemas_take_the_daemonset(version):
    schemas = pytest.importorskip("kubernetes_validate")
    yaml = pytest.importorskip("yaml")
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "daemonset.yaml").read_text()))
    for document in documents:
        schemas.validate(document, version, strict=True)
    documents[0]["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(schemas.ValidationError):  # a field that there is not is found
        schemas.validate(documents[0], version, strict=True)


def test_the_daemonset_is_yaml_of_its_kind():
    yaml = pytest.importorskip("yaml")
    (document,) = yaml.safe_load_all((DEPLOY / "kubernetes" / "daemonset.yaml").read_text())
    pod = document["spec"]["template"]
    assert document["kind"] == "DaemonSet" and document["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["spec"]["volumes"]}
    assert container["ports"][0]["containerPort"] == 9810 and container["args"][1] == ":9810"
