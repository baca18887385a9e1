"""Lists, creates, patches, watches and deletes by means of the Python client. Takes the path of a kubeconfig."""

import sys

from kubernetes import client, config, watch

config.load_kube_config(config_file=sys.argv[1])
api = client.FlowcontrolApiserverV1Api()

names = [schema.metadata.name for schema in api.list_flow_schema().items]
assert "exempt" in names and "catch-all" in names, names
assert len(api.list_priority_level_configuration(limit=3).items) == 3

rule = {
    "subjects": [{"kind": "User", "user": {"name": "alice"}}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/reports/*"]}],
}
spec = {"priorityLevelConfiguration": {"name": "workload-low"}, "matchingPrecedence": 600, "rules": [rule]}
created = api.create_flow_schema({"metadata": {"name": "python"}, "spec": spec})
assert created.spec.matching_precedence == 600, created

# A dict is a strategic merge patch or a merge patch, a list is a JSON patch.
patched = api.patch_flow_schema("python", {"spec": {"matchingPrecedence": 601}})
assert patched.spec.matching_precedence == 601, patched
operations = [{"op": "replace", "path": "/spec/matchingPrecedence", "value": 602}]
patched = api.patch_flow_schema("python", operations)
assert patched.spec.matching_precedence == 602, patched

replaced = api.read_flow_schema("python")
replaced.spec.matching_precedence = 603
# The status may be written by the server in between.
replaced.metadata.resource_version = None
replaced = api.replace_flow_schema("python", replaced)
assert replaced.spec.matching_precedence == 603, replaced

stream = watch.Watch()
# Of this one only: the server may be writing the status of others.
only = {"field_selector": "metadata.name=python", "resource_version": created.metadata.resource_version}
for event in stream.stream(api.list_flow_schema, timeout_seconds=60, **only):
    assert event["type"] == "MODIFIED" and event["object"].metadata.name == "python", event
    stream.stop()

api.delete_flow_schema("python")
try:
    api.read_flow_schema("python")
    raise AssertionError("it is still there")
except client.exceptions.ApiException as error:
    assert error.status == 404, error
print("done")
