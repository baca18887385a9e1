"""Validates the documents of YAML files against the schemas of Kubernetes, strictly: unknown fields are problems.

Arguments: a file with the schemas of the Prometheus Operator's kinds, then VERSION:FILE pairs. Prints a line for each problem.
"""
import functools
import json
import sys

import jsonschema
import yaml
from kubernetes_validate import utils

# Each schema is read once, and not for every document.
utils.schema_contents = functools.lru_cache(None)(utils.schema_contents)


def problem(document, version, operator_schemas):
    try:
        if document["apiVersion"].startswith("monitoring.coreos.com/"):
            jsonschema.validate(document, operator_schemas[document["kind"]])
        else:
            utils.validate(document, version, strict=True)
    except (jsonschema.ValidationError, utils.ValidationError) as error:
        return "/".join(str(part) for part in error.path) + ": " + error.message
    except utils.SchemaNotFoundError as error:
        return error.message
    return None


with open(sys.argv[1]) as file:
    operator_schemas = json.load(file)
count = 0
for argument in sys.argv[2:]:
    version, path = argument.split(":", 1)
    with open(path) as file:
        documents = [document for document in yaml.safe_load_all(file) if document]
    for document in documents:
        count += 1
        found = problem(document, version, operator_schemas)
        if found:
            print(f"{path} {document['kind']} {document['metadata']['name']} ({version}): {found}")
print(f"{count} documents")
