"""What an episode is, and what is lowered over episodes."""

import itertools

import torch

from lemmata.judge import all_of, always, at_most, claim, close, exactly, law_is, lie
from lemmata.meta.claims.quadratic_tasks import Point, drawn_losses, loss_of_rows, tasks_of, walked
from lemmata.meta.episodes import Episodes
from lemmata.meta.maml import MAML


class Overlapping(Episodes):
    """Asks for what was just learnt."""

    def __getitem__(self, which):
        episode = super().__getitem__(which)
        return {**episode, "query_x": episode["x"], "query_y": episode["y"]}


class Named(Episodes):
    """Classes keep the order of their names."""

    def __getitem__(self, which):
        episode = super().__getitem__(which)
        classes = (episode["x"][:: self.shots, 0] // 20).long()
        rank = classes.argsort().argsort()
        return {**episode, "y": rank[episode["y"]], "query_y": rank[episode["query_y"]]}


class Forgetful(Episodes):
    """An episode that is asked for twice is drawn anew."""

    def __getitem__(self, which):
        self.seed += 1
        return super().__getitem__(which)


@claim("meta.episode")
@lie("the query may hold what was learnt from", sampler=Overlapping)
@lie("classes keep their order", sampler=Named)
@lie("an episode is another one each time", sampler=Forgetful)
@lie("one shot more", shots=3)
def a_task_with_its_support_and_query(draw, sampler=Episodes, shots=2):
    """Forty episodes of examples that are known by number: sizes, classes, what is in both; and the names' law."""
    ways, queries = 4, 5
    x, y = torch.arange(140.0, dtype=torch.float64)[:, None], torch.arange(140) // 20
    made = sampler(x, y, ways, 2, queries, length=4000, seed=int(draw.integers(0, 10**6)))
    cases, sizes = [], []
    for k in range(40):
        episode, again = made[k], made[k]
        rows, asked = episode["x"][:, 0].long(), episode["query_x"][:, 0].long()
        names = {int(y[row]): int(name) for row, name in zip(rows, episode["y"], strict=True)}
        cases += [
            not set(rows.tolist()) & set(asked.tolist()),
            sorted(names.values()) == list(range(ways)),
            all(names[int(y[row])] == int(name) for row, name in zip(rows, episode["y"], strict=True)),
            all(names[int(y[row])] == int(name) for row, name in zip(asked, episode["query_y"], strict=True)),
            torch.equal(episode["x"], again["x"]) and torch.equal(episode["query_x"], again["query_x"]),
        ]
        sizes.append(episode["y"].bincount().tolist() + episode["query_y"].bincount().tolist())
    passed = itertools.count()

    def spread(n):
        """The class that is called 0 in each of n episodes, made a law on the line by a draw from the unit interval."""
        found = [made[next(passed)] for _ in range(n)]
        first = [y[episode["x"][episode["y"].argmin(), 0].long()] for episode in found]
        return torch.stack(first).double() + draw.uniform(n)

    return all_of(
        always(cases),
        exactly(sizes, [[shots] * ways + [queries] * ways] * 40),
        law_is(spread, lambda t: (t / 7).clamp(0, 1), effect=0.2),
    )


def by_gradients(learner, batch):
    """Where a quasi-Newton method ends that is given the gradients of the objective."""
    optimizer = torch.optim.LBFGS(learner.parameters(), max_iter=30, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = learner.loss(batch)
        loss.backward()
        return loss

    optimizer.step(closure)
    return learner.model.where.detach()


@torch.no_grad()
def by_evolution(learner, batch):
    """Where random changes end that are taken in proportion to what they gain, without any derivative."""
    random, where = torch.Generator().manual_seed(0), learner.model.where
    for _ in range(60):
        start, step = where.clone(), torch.zeros_like(where)
        for change in torch.randn(2, len(where), generator=random, dtype=torch.float64):
            losses = []
            for side in (1, -1):
                where.copy_(start + 0.1 * side * change)
                losses.append(learner.loss(batch))
            step += (losses[0] - losses[1]) / 0.2 * change / 2
        where.copy_(start - 0.2 * step)
    return where


@claim("meta.objective")
@lie("the loss on the support has the same best start", judged="support")
@lie("the loss before anything is learnt", steps=0)
@lie("the largest over the tasks", reduce=torch.amax)
def the_loss_on_new_data_after_learning(draw, judged="query", steps=2, reduce=torch.mean, learner=MAML):
    """Quadratic tasks in the plane: the objective by hand, and its least value by gradients and by evolution."""
    support, query = drawn_losses(draw, 4, 2), drawn_losses(draw, 4, 2)
    outer, batch, rate = query if judged == "query" else support, tasks_of(support, query), 0.15

    def objective(start):
        return reduce(torch.stack([outer.of(t, walked(support, t, start, steps, rate)[-1]) for t in range(4)]))

    def made(start):
        return learner(Point(start), 2, rate, loss=loss_of_rows)

    start = 4 * draw.unit(2)
    best = torch.zeros(2, dtype=torch.float64)
    slope, bend = torch.func.grad(objective)(best), torch.func.hessian(objective)(best)
    least = best - torch.linalg.solve(bend, slope)  # of a quadratic, by one step of Newton
    found = [method(made(start), batch) for method in (by_gradients, by_evolution)]
    return all_of(
        close(made(start).loss(batch).detach(), objective(start), ulps=1e4),
        close(found[0], least, within=1e-4),
        at_most(objective(found[1]) - objective(least), 0.01 * (objective(start) - objective(least))),
    )
