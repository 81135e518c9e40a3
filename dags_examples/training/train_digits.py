"""
Trains a small neural network on scikit-learn's handwritten digits and survives being killed at any moment.

Nothing here knows Airflow or DLC. The folder in PAI_SPOT_CHECKPOINT_DIR is the same for every attempt of one
task, so an attempt starts where the last checkpoint of the one before it ends. Each line that begins with
PAI_SPOT_PROGRESS is a step as people and machines can read it; the first one names the step it starts from.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

HIDDEN, CLASSES, BATCH, SEED, TRAINING_PART = 32, 10, 64, 20, 1500

Model = dict[str, np.ndarray]
Data = tuple[np.ndarray, np.ndarray]


def load_data() -> tuple[Data, Data]:
    """Return pixels scaled to 0..1 and labels, for training and for testing."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(SEED).permutation(len(labels))
    training, testing = order[:TRAINING_PART], order[TRAINING_PART:]
    pixels = pixels / pixels.max()
    return (pixels[training], labels[training]), (pixels[testing], labels[testing])


def new_model(inputs: int) -> Model:
    """Return the weights of an untrained network."""
    rng = np.random.default_rng(SEED)
    return {
        "w1": rng.normal(0, 0.2, (inputs, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(0, 0.2, (HIDDEN, CLASSES)),
        "b2": np.zeros(CLASSES),
    }


def predict(model: Model, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return hidden activations and the probability of each digit."""
    hidden = np.tanh(pixels @ model["w1"] + model["b1"])
    scores = hidden @ model["w2"] + model["b2"]
    likelihoods = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, likelihoods / likelihoods.sum(axis=1, keepdims=True)


def train_step(model: Model, data: Data, step: int, learning_rate: float) -> float:
    """Improve the model in place with the batch that belongs to this step, and return the loss before."""
    chosen = np.random.default_rng((SEED, step)).integers(len(data[1]), size=BATCH)
    pixels, labels = data[0][chosen], data[1][chosen]
    hidden, error = predict(model, pixels)
    loss = -np.log(error[np.arange(BATCH), labels]).mean()
    error[np.arange(BATCH), labels] -= 1
    back = (error @ model["w2"].T) * (1 - hidden**2)
    slopes = {"w1": pixels.T @ back, "b1": back.sum(0), "w2": hidden.T @ error, "b2": error.sum(0)}
    for name, slope in slopes.items():
        model[name] -= learning_rate * slope / BATCH
    return float(loss)


def save(folder: Path, model: Model, step: int) -> None:
    """Replace the checkpoint in one move: whoever is killed meanwhile leaves the old one whole."""
    unfinished = folder / "digits.npz.part"
    with unfinished.open("wb") as file:
        np.savez(file, step=step, **model)
    unfinished.replace(folder / "digits.npz")


def restore(folder: Path, inputs: int) -> tuple[Model, int]:
    """Return the model and its step: those of the last checkpoint, else an untrained one and 0."""
    checkpoint = folder / "digits.npz"
    if not checkpoint.exists():
        return new_model(inputs), 0
    with np.load(checkpoint) as stored:
        return {name: stored[name] for name in stored.files if name != "step"}, int(stored["step"])


def report(model: Model, testing: Data, **progress: float) -> None:
    """Print where we are and how many digits it has never seen the model reads correctly."""
    right = predict(model, testing[0])[1].argmax(axis=1) == testing[1]
    print("PAI_SPOT_PROGRESS", json.dumps(progress | {"accuracy": round(float(right.mean()), 4)}), flush=True)


def train(options: argparse.Namespace, folder: Path) -> Model:
    """Train up to `options.steps` steps, counting those of earlier attempts."""
    folder.mkdir(parents=True, exist_ok=True)
    training, testing = load_data()
    model, saved = restore(folder, inputs=training[0].shape[1])
    report(model, testing, step=saved, of=options.steps, checkpoint=saved)
    for step in range(saved + 1, options.steps + 1):
        loss = train_step(model, training, step, options.learning_rate)
        time.sleep(options.seconds_per_step)
        if step % options.checkpoint_every == 0 or step == options.steps:
            save(folder, model, step)
            saved = step
        report(model, testing, step=step, of=options.steps, checkpoint=saved, loss=round(loss, 4))
    return model


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--seconds-per-step", type=float, default=0.0, help="slows it down, to watch it")
    parser.add_argument("--checkpoint-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--learning-rate", type=float, default=0.5)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    train(parse(), Path(os.environ.get("PAI_SPOT_CHECKPOINT_DIR", "checkpoints")))
