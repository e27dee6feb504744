#!/usr/bin/env python3
"""Prints what score.py found, with 95 % intervals by bootstrap over recordings.

    report.py likelihood.json [--of ours]

`share` is where a policy is between no history (0) and the whole history (1). It says nothing unless the controls do:
the same window twice must be alike, and taking away the file that the action names must cost more than taking away as
much text at random. Exits with 1 if they do not hold.
"""

import argparse
import collections
import json
import random
import sys

DRAWS = 1_000
KINDS = (None, 'edit', 'call', 'answer')
CONTROLS = ('again', 'without-file', 'without-random')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('file')
    parser.add_argument('--of', default='ours')
    arguments = parser.parse_args()
    with open(arguments.file) as file:
        data = json.load(file)
    print(f'model {data["model"]}, moments sampled with seed {data["seed"]}')
    for name in ('short', 'long'):
        moments = [moment for moment in data['moments'] if moment['set'] == name]
        if moments:
            print_set(name, moments, arguments.of)
    sys.exit(0 if controls_hold(data['moments']) else 1)


def mean(moments, policy):
    """Nats for each token of the actions."""
    sums = [value for moment in moments for value in moment['nats'][policy].values()]
    return sum(nats for nats, _ in sums) / max(1, sum(tokens for _, tokens in sums))


def share(moments, policy):
    none, whole = mean(moments, 'none'), mean(moments, 'whole')
    return (none - mean(moments, policy)) / (none - whole) if none != whole else float('nan')


def interval(moments, value):
    """The value with the interval in which 95 of 100 values are when recordings are drawn again."""
    by_file = collections.defaultdict(list)
    for moment in moments:
        by_file[moment['file']].append(moment)
    files, draw = sorted(by_file), random.Random(1)
    drawn = sorted(value([moment for _ in files for moment in by_file[draw.choice(files)]]) for _ in range(DRAWS))
    return value(moments), drawn[DRAWS // 40], drawn[-DRAWS // 40]


def written(values):
    return '{:.3f} [{:.3f}, {:.3f}]'.format(*values)


def print_set(name, moments, of):
    policies = sorted({policy for moment in moments for policy in moment['nats']} - set(CONTROLS))
    fitting = [moment for moment in moments if all(policy in moment['nats'] for policy in policies)]
    files = len({moment['file'] for moment in fitting})
    print(f'\n{name}: {len(fitting)} moments of {files} recordings; {len(moments) - len(fitting)} do not fit into the model')
    for kind in KINDS:
        chosen = [moment for moment in fitting if kind in (None, moment['kind'])]
        if not chosen:
            continue
        print(f'\n| {kind or "all"} ({len(chosen)}) | nats a token | tokens | share |\n| --- | --- | --- | --- |')
        for policy in sorted(policies, key=lambda policy: mean(chosen, policy)):
            tokens = sum(moment['tokens'][policy] for moment in chosen) // len(chosen)
            scale = written(interval(chosen, lambda drawn: share(drawn, policy))) if 'whole' in policies else ''
            print(f'| {policy} | {mean(chosen, policy):.4f} | {tokens} | {scale} |')
    for policy in policies:
        if of in policies and policy != of:
            difference = interval(fitting, lambda drawn: mean(drawn, of) - mean(drawn, policy))
            print(f'{of} less {policy}: {written(difference)} nats a token')


def controls_hold(moments):
    both = [moment for moment in moments if 'again' in moment['nats']]
    differ = [moment for moment in both if moment['nats']['again'] != moment['nats']['ours']]
    named = [moment for moment in moments if all(policy in moment['nats'] for policy in (*CONTROLS, 'whole'))]
    print(f'\ncontrols\nthe same window twice: {len(differ)} of {len(both)} moments differ')
    if not named:
        print('no moment names a file that the past has: the judge was not tested')
        return False
    file = interval(named, lambda drawn: mean(drawn, 'without-file') - mean(drawn, 'whole'))
    other = interval(named, lambda drawn: mean(drawn, 'without-random') - mean(drawn, 'whole'))
    more = interval(named, lambda drawn: mean(drawn, 'without-file') - mean(drawn, 'without-random'))
    print(f'without the named file:            {written(file)} nats a token more than with the whole past ({len(named)} moments)')
    print(f'without as much text at random:    {written(other)}')
    print(f'the file rather than random text:  {written(more)}')
    holds = not differ and file[1] > 0 and more[1] > 0
    print('the controls hold' if holds else 'the controls do not hold: the table above says nothing')
    return holds


if __name__ == '__main__':
    main()
