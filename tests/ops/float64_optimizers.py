"""One step of each fused optimizer in double precision, from its formula.

Each rule takes the rows, a dict of slots, the summed gradients and a dict of
hyper-parameters, and changes rows and slots in place. Slots start as the
optimizer says; a missing one is made by `slot`.
"""

import numpy as np


def slot(slots, name, like, initial=0.0):
    """Returns a slot, which starts at `initial`."""
    return slots.setdefault(name, np.full_like(like, initial))


def sgd(rows, slots, grad, p):  # noqa: ARG001 - all rules have one form
    """Row moves against the gradient."""
    rows -= p["lr"] * grad


def momentum(rows, slots, grad, p):
    """Keras SGD with momentum; Nesterov looks ahead."""
    velocity = slot(slots, "momentum", rows)
    velocity *= p["momentum"]
    velocity -= p["lr"] * grad
    if p.get("nesterov"):
        rows += p["momentum"] * velocity - p["lr"] * grad
    else:
        rows += velocity


def adagrad(rows, slots, grad, p):
    """Divides by the root of the sum of squares."""
    total = slot(slots, "accumulator", rows, p["initial_accumulator"])
    total += grad**2
    rows -= p["lr"] * grad / np.sqrt(total + p["epsilon"])


def rowwise_adagrad(rows, slots, grad, p):
    """Adagrad with one accumulator a row: the mean of squares."""
    total = slot(slots, "accumulator", rows[:, :1], p["initial_accumulator"])
    total += np.mean(grad**2, axis=1, keepdims=True)
    rows -= p["lr"] * grad / np.sqrt(total + p["epsilon"])


def adam(rows, slots, grad, p):
    """Keras Adam; AMSGrad keeps the largest second moment."""
    first, second = slot(slots, "m", rows), slot(slots, "v", rows)
    first += (grad - first) * (1 - p["beta_1"])
    second += (grad**2 - second) * (1 - p["beta_2"])
    correction = np.sqrt(1 - p["beta_2"] ** p["step"]) / (
        1 - p["beta_1"] ** p["step"]
    )
    if p.get("amsgrad"):
        largest = slot(slots, "v_hat", rows)
        np.maximum(largest, second, out=largest)
        second = largest
    rows -= p["lr"] * correction * first / (np.sqrt(second) + p["epsilon"])


def ftrl(rows, slots, grad, p):
    """Keras Ftrl: follow the regularized leader."""
    total = slot(slots, "accumulator", rows, p["initial_accumulator"])
    linear = slot(slots, "linear", rows)
    power = -p["learning_rate_power"]
    l2 = p["l2"] + p["beta"] / (2 * p["lr"])
    shrunk = grad + 2 * p["l2_shrinkage"] * rows
    after = total + grad**2
    linear += shrunk - (after**power - total**power) / p["lr"] * rows
    total[:] = after
    numerator = np.clip(linear, -p["l1"], p["l1"]) - linear
    rows[:] = numerator / (after**power / p["lr"] + 2 * l2)


def rmsprop(rows, slots, grad, p):
    """Keras RMSprop; centered subtracts the squared mean gradient."""
    square = slot(slots, "velocity", rows)
    square += (grad**2 - square) * (1 - p["rho"])
    denominator = square + p["epsilon"]
    if p.get("centered"):
        average = slot(slots, "average", rows)
        average += (grad - average) * (1 - p["rho"])
        denominator = denominator - average**2
    step = p["lr"] * grad / np.sqrt(denominator)
    if p["momentum"] > 0:
        velocity = slot(slots, "momentum", rows)
        velocity *= p["momentum"]
        velocity += step
        step = velocity
    rows -= step


RULES = {
    "sgd": sgd,
    "momentum": momentum,
    "adagrad": adagrad,
    "rowwise_adagrad": rowwise_adagrad,
    "adam": adam,
    "ftrl": ftrl,
    "rmsprop": rmsprop,
}

DEFAULTS = {
    "momentum": 0.0,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "rho": 0.9,
    "epsilon": 1e-7,
    "initial_accumulator": 0.0,
    "learning_rate_power": -0.5,
    "l1": 0.0,
    "l2": 0.0,
    "l2_shrinkage": 0.0,
    "beta": 0.0,
    "clipnorm": 0.0,
    "clipvalue": 0.0,
    "weight_decay": 0.0,
}


def clipped(grad, p):
    """Clips summed gradients by norm over all rows, then by value."""
    norm = np.sqrt(np.sum(grad**2))
    if p["clipnorm"] > 0 and norm > p["clipnorm"]:
        grad = grad * (p["clipnorm"] / norm)
    if p["clipvalue"] > 0:
        grad = np.clip(grad, -p["clipvalue"], p["clipvalue"])
    return grad
