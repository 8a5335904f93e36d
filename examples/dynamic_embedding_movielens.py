"""Predicts ratings of MovieLens 100k with dynamic embeddings.

    python examples/dynamic_embedding_movielens.py ml-100k

The folder is the unpacked https://files.grouplens.org/datasets/movielens/
ml-100k.zip. A rating is predicted as

    mean + bias of the user + bias of the movie + user . movie

where a row of `users` and `movies` holds the bias and the vector. The rows come
into being as their ids are seen: no vocabulary and no sizes are given.
"""

import argparse
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from rich.progress import track

import embedra.dynamic_embedding as de


DIM = 24
BATCH = 1024
# Pulls vectors towards 0, and biases a little less.
DECAY = np.array([0.01] + [0.1] * DIM, np.float32)


class Ratings:
    """Users, movies and their ratings.

    Args:
        path: A file of lines of user, movie, rating and time.
    """

    def __init__(self, path: Path) -> None:
        try:
            columns = np.loadtxt(path, np.int64, usecols=(0, 1, 2), ndmin=2)
        except (OSError, ValueError) as error:
            msg = f"{path} is not a file of MovieLens 100k ratings: {error}"
            raise SystemExit(msg) from error
        self.users, self.movies, ratings = columns.T
        self.ratings = ratings.astype(np.float32)

    def batches(self, generator: np.random.Generator) -> Any:
        """Yields tensors of users, movies and ratings, in a new order."""
        order = generator.permutation(len(self.ratings))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            yield (
                tf.constant(self.users[batch]),
                tf.constant(self.movies[batch]),
                tf.constant(self.ratings[batch]),
            )


class Model:
    """Two tables and how they are trained.

    Args:
        mean: Mean rating.
    """

    def __init__(self, mean: float) -> None:
        start = keras.initializers.RandomNormal(stddev=0.05)
        self.users = de.Variable(dim=1 + DIM, name="users", initializer=start)
        self.movies = de.Variable(dim=1 + DIM, name="movies", initializer=start)
        self.mean = mean
        self.optimizer = de.DynamicEmbeddingOptimizer(
            keras.optimizers.Adam(0.01)
        )

    def predict(self, user: tf.Tensor, movie: tf.Tensor) -> tf.Tensor:
        """Predicts ratings from rows of users and movies."""
        bias = user[:, 0] + movie[:, 0]
        return self.mean + bias + tf.reduce_sum(user[:, 1:] * movie[:, 1:], -1)

    @tf.function(reduce_retracing=True)
    def step(self, users: Any, movies: Any, ratings: Any) -> tf.Tensor:
        """Trains on a batch; returns its mean squared error."""
        with tf.GradientTape() as tape:
            user, of_users = de.embedding_lookup(
                self.users, users, return_trainable=True
            )
            movie, of_movies = de.embedding_lookup(
                self.movies, movies, return_trainable=True
            )
            error = tf.reduce_mean((self.predict(user, movie) - ratings) ** 2)
            decay = tf.reduce_mean((user**2 + movie**2) @ DECAY[:, None])
            loss = error + decay
        trainables = [of_users, of_movies]
        gradients = tape.gradient(loss, trainables)
        self.optimizer.apply_gradients(zip(gradients, trainables, strict=True))
        return error

    def rmse(self, data: Ratings) -> float:
        """Returns the root of the mean squared error; unseen ids are read."""
        user = self.users.lookup(data.users)
        movie = self.movies.lookup(data.movies)
        predicted = tf.clip_by_value(self.predict(user, movie), 1.0, 5.0)
        return float(tf.sqrt(tf.reduce_mean((predicted - data.ratings) ** 2)))


def main() -> None:
    """Trains on ua.base and prints the error on ua.test."""
    parser = argparse.ArgumentParser(description="Trains on MovieLens 100k.")
    parser.add_argument("path", type=Path, help="folder with ua.base, ua.test")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    train, test = (Ratings(args.path / name) for name in ("ua.base", "ua.test"))
    keras.utils.set_random_seed(args.seed)
    generator = np.random.default_rng(args.seed)
    model = Model(float(train.ratings.mean()))
    for _ in track(range(args.epochs), "Training"):
        for batch in train.batches(generator):
            model.step(*batch)
    print(
        f"{int(model.users.size())} users, {int(model.movies.size())} movies, "
        f"RMSE on ua.test: {model.rmse(test):.4f}"
    )


if __name__ == "__main__":
    main()
