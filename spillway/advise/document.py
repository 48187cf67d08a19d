"""An answer as JSON: what was asked, what was found, in the units of the names."""

from dataclasses import asdict
from typing import Any

from spillway.advise.configuration import Configuration, db_options, family_options, table_options
from spillway.advise.decide import RATIO_ERROR
from spillway.advise.others import Others
from spillway.advise.predict import MODEL_ERROR, Figure, Prediction
from spillway.advise.rank import keeps, limits_of
from spillway.advise.reasons import reasons
from spillway.advise.search import Advice
from spillway.advise.verify import FIGURES, Verified

Document = dict[str, Any]
CONTRACT = 1  # version of this layout


def document(advice: Advice, others: Others, verified: list[Verified]) -> Document:
    """The whole answer."""
    request = advice.request
    limits = limits_of(request.load, request.limits)
    return {
        "contract": CONTRACT,
        "drive": {
            "name": request.drive.name,
            "words": request.drive.words,
            "capacity_bytes": request.drive.capacity_bytes,
            "physical_bytes": request.drive.physical_bytes,
            "rated_pe_cycles": request.drive.rated_pe_cycles,
            "remarks": list(request.drive.remarks),
        },
        "load": asdict(request.load),
        "limits": asdict(request.limits),
        "cores": request.cores,
        "host": asdict(request.costs),
        "ranked_by": request.order,
        "considered": advice.considered,
        "simulated": advice.simulated,
        "model_error": dict(MODEL_ERROR),
        "ratio_error": dict(RATIO_ERROR),
        "advised": {
            "place": advice.decision.place,
            "why": advice.decision.why,
            "configuration": asdict(advice.decision.advised.config),
        },
        "ranked": [prediction(each) for each in advice.ranked],
        "rivals": {
            name: prediction(each) | {"within_limits": keeps(each, limits)} for name, each in advice.rivals.items()
        },
        "shapes": {name: prediction(each) for name, each in advice.shapes.items()},
        "without_room": list(advice.without_room),
        "refused": dict(advice.refused),
        "ended": advice.ended,
        "reasons": [asdict(each) for each in reasons(advice)],
        "options": options(advice.decision.advised.config),
        "others": asdict(others),
        "verified": [_verified(each) for each in verified],
    }


def prediction(each: Prediction) -> Document:
    """A configuration with its figures."""
    return {
        "configuration": asdict(each.config),
        "throughput_ops_s": each.throughput_ops_s.document(),
        "mean_us": each.mean_us,
        "p99_us": {kind: figure.document() for kind, figure in each.p99_us.items()},
        "wa_app": each.wa_app.document(),
        "wa_device": each.wa_device.document(),
        "wa_total": each.wa_total.document(),
        "flash_bytes_per_op": each.flash_bytes_per_op.document(),
        "years": _or_none(each.years),
        "held_bytes": each.held_bytes.document(),
        "memory_bytes": each.memory_bytes,
        "drive_busy": each.drive_busy,
        "limited_by": each.limited_by,
        "stalls": {
            "delayed_share": each.traffic.delayed_share,
            "stopped_share": each.traffic.stopped_share,
            "worst_wait_s": each.traffic.worst_wait_s,
        },
    }


def options(config: Configuration) -> Document:
    """A configuration as RocksDB's options."""
    named = db_options(config) | family_options(config) | table_options(config)
    return named | {"block_cache": str(config.block_cache_bytes)}


def _or_none(figure: Figure | None) -> Document | None:
    return None if figure is None else figure.document()


def _verified(each: Verified) -> Document:
    if each.measured is None:
        measured, within = None, None
    else:
        measured = {name: each.value(name) for name in FIGURES}
        within = {name: each.is_within(name) for name in FIGURES}
    expected = each.expected("throughput_ops_s")
    return {
        "name": each.name,
        "predicted": prediction(each.predicted) | {"at_rate_ops_s": _or_none(expected)},
        "measured": measured,
        "within_interval": within,
    }
