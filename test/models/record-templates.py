#!/usr/bin/env python3
"""Records what transformers makes of chat templates, for the tests of chattemplate.

usage: record-templates.py TESTDATA MODELS

TESTDATA is chattemplate/testdata. From templates/ and contexts.json this makes
golden.json (our own templates, whole texts) and real.json (the templates under
MODELS, hashes only); in micro.json and apply.json it renews the results.
"""
import copy
import functools
import glob
import hashlib
import json
import os
import sys
import warnings
from datetime import datetime

warnings.simplefilter("ignore")
import jinja2
import transformers.utils.chat_template_utils as chat


class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 5, 14, 7, 9)


chat.datetime = Clock
compiled = functools.cache(chat._cached_compile_jinja_template)
TESTDATA, MODELS = sys.argv[1:3]


def load(name):
    with open(os.path.join(TESTDATA, name), encoding="utf-8") as f:
        return json.load(f)


def save(name, value, **how):
    with open(os.path.join(TESTDATA, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, **how)
        f.write("\n")


def outcome(render):
    """{"text": ...}, {"raised": message} or {"error": kind}."""
    try:
        return {"text": render()}
    except jinja2.exceptions.TemplateError as e:
        if type(e) is jinja2.exceptions.TemplateError:
            return {"raised": str(e)}
        return {"error": type(e).__name__}
    except Exception as e:
        return {"error": type(e).__name__}


def render(source, variables):
    return compiled(source).render(**copy.deepcopy(variables))


def digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def short(o):
    """An outcome in few letters, without the text."""
    if "text" in o:
        return digest(o["text"])[:12]
    if "raised" in o:
        return "raised " + digest(o["raised"])[:12]
    return "error"


def own_templates():
    out = {}
    for path in sorted(glob.glob(os.path.join(TESTDATA, "templates", "*.jinja"))):
        with open(path, encoding="utf-8", newline="") as f:
            out[os.path.basename(path)] = f.read()
    return out


def real_templates():
    """Those in MODELS/NAME/tokenizer_config.json and MODELS/.templates/*.jinja."""
    out = {}
    for path in sorted(glob.glob(os.path.join(MODELS, "*", "tokenizer_config.json"))):
        name = os.path.basename(os.path.dirname(path))
        with open(path, encoding="utf-8") as f:
            t = json.load(f).get("chat_template")
        if isinstance(t, str):
            out[name] = t
        for named in t if isinstance(t, list) else []:
            out[name + "/" + named["name"]] = named["template"]
    for path in sorted(glob.glob(os.path.join(MODELS, ".templates", "*.jinja"))):
        with open(path, encoding="utf-8", newline="") as f:
            out[".templates/" + os.path.basename(path)] = f.read()
    return out


def golden(contexts):
    """Language features are the same in every conversation: two are enough for them."""
    own, out = own_templates(), {}
    conversational = ("chatml", "headers", "tools", "thinking", "strict")
    for name, source in own.items():
        whole = name.split(".")[0] in conversational
        used = [c for c in contexts if (whole and not c["name"].startswith("long")) or c["name"] in ("turns", "no-messages")]
        out[name] = {c["name"]: outcome(lambda: render(source, c["ctx"])) for c in used}
    save("golden.json", out, indent=0)
    return sum(map(len, out.values()))


def real(contexts):
    out = {}
    for name, source in real_templates().items():
        out[name] = {"sha256": digest(source), "results": " ".join(short(outcome(lambda: render(source, c["ctx"]))).replace(" ", ":") for c in contexts)}
    save("real.json", out, indent=0)
    return len(out)


def micro():
    """Small templates in groups, each with its variables: results are made anew."""
    groups = load("micro.json")
    for group in groups:
        for case in group["cases"]:
            source = case["template"]
            case.clear()
            case.update(template=source, **outcome(lambda: render(source, group["context"])))
    save("micro.json", groups, indent=0)
    return sum(len(group["cases"]) for group in groups)


def applied():
    """Through apply_chat_template's own steps: nulls, reasoning, an open last message."""
    own, cases = own_templates(), load("apply.json")
    for case in cases:
        def whole():
            i = copy.deepcopy(case["input"])
            if i.get("continue_final_message") and i.get("add_generation_prompt"):
                raise ValueError("apply_chat_template refuses both")
            texts, _ = chat.render_jinja_template(
                conversations=[chat._normalize_chat_messages(i["messages"])],
                tools=i.get("tools"),
                documents=i.get("documents"),
                chat_template=own.get(case["template"], case["template"]),
                continue_final_message=i.get("continue_final_message", False),
                add_generation_prompt=i.get("add_generation_prompt", False),
                **{**i.get("special_tokens", {}), **i.get("chat_template_kwargs", {})},
            )
            return texts[0]
        case["want"] = outcome(whole)
    save("apply.json", cases, indent=1)
    return len(cases)


contexts = load("contexts.json")
print("own:", golden(contexts), "texts; real:", real(contexts), "templates; micro:", micro(), "cases; apply:", applied(), "cases")
