"""XGBoost and LightGBM: boosted trees on digits, 40 % of whose labels are wrong.

    python examples/boosting_digits.py [--rounds 100]

Needs `pip install "lossforge[bench,boost]"`. Prints the test accuracy with each library's own
objective and with BEF. Trees, depth, learning rate and rounds are the libraries' defaults; leaves
are regularised more than by default, alike for both objectives. How they compare with other
settings, and where BEF is no better, is in docs/integrations.md.
"""

import argparse

import lightgbm
import torch
import xgboost

import lossforge
from lossforge import data, noise
from lossforge.integrations.boosting import objective, probabilities


def main() -> None:
    """Train with each objective and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    digits = data.load("digits")
    generator = torch.Generator().manual_seed(0)
    T = noise.symmetric(10, 0.4)
    given = noise.corrupt(digits.train.true, T, generator=generator).labels
    train, labels = digits.train.inputs.numpy(), given.numpy()
    test, true = digits.tests["test"].inputs.numpy(), digits.tests["test"].true.numpy()
    robust = objective(lossforge.BEF(), num_class=10)
    for name, function in {"built-in": "multi:softprob", "BEF": robust}.items():
        settings = {"reg_lambda": 3, "min_child_weight": 3, "n_estimators": options.rounds}
        model = xgboost.XGBClassifier(objective=function, **settings)
        found = (model.fit(train, labels).predict_proba(test).argmax(1) == true).mean()
        print(f"XGBoost   {name:10}{100 * found:6.1f} % of the test digits", flush=True)
    for name, function in {"built-in": "multiclass", "BEF": robust}.items():
        settings = {"lambda_l2": 1, "min_sum_hessian_in_leaf": 1, "num_class": 10, "verbose": -1}
        settings["objective"] = function
        booster = lightgbm.train(settings, lightgbm.Dataset(train, labels), options.rounds)
        probs = probabilities(booster.predict(test, raw_score=True))
        found = (probs.argmax(1) == true).mean()
        print(f"LightGBM  {name:10}{100 * found:6.1f} % of the test digits", flush=True)


if __name__ == "__main__":
    main()
