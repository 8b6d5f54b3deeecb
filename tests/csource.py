# SPDX-License-Identifier: MIT
"""What tests/coverage reads from C sources: the cases with all that they use of their file, the names of statuses, the locks."""
import os
import re

CASE = re.compile(r'^(?!RUNNER|PART)[A-Z][A-Z_]*\((\w+)')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
# Objects by their long and their short name.
SHORT = {'completion queue': 'cq', 'shared receive queue': 'srq', 'queue pair': 'qp', 'memory region': 'mr', 'memory window': 'mw',
         'address handle': 'ah', 'protection domain': 'pd', 'window': 'mw', 'region': 'mr'}


def read(*path):
    with open(os.path.join(*path), encoding='utf-8') as file:
        return file.read()


def sources(*folders):
    """The paths of the C files below the folders."""
    for root in folders:
        for folder, _, files in os.walk(root):
            for name in sorted(files):
                if name.endswith(('.c', '.cpp', '.h')):
                    yield os.path.join(folder, name)


def blank_comments(text):
    return COMMENT.sub(lambda comment: '\n' * comment.group().count('\n'), text)


def case_ends(lines, start):
    """The line in which the case that begins in that line ends: a case may be a call of a macro and no more."""
    following = lines[start + 1] if start + 1 < len(lines) else ''
    if lines[start].endswith(')') and not following.startswith('{'):
        return start
    return next((i for i in range(start, len(lines)) if lines[i].startswith('}')), len(lines))


def definitions(text):
    """[(names, case or None, text)]: what a C file defines at its outermost level, macros too, without the comments."""
    lines = blank_comments(text).splitlines()
    found, first, depth, outside = [], None, 0, ''
    for i, line in enumerate(lines):
        if first is None:
            if not re.match(r'\w|#define', line):
                continue
            first, depth, outside = i, 0, ''
        case = CASE.match(lines[first])
        if lines[first].startswith('#'):
            ended, names = not line.endswith('\\'), re.findall(r'#define (\w+)', lines[first])
        else:
            for part in re.split(r'([{}])', line):
                depth += (part == '{') - (part == '}')
                outside += part if depth == 0 else ''
            ended = depth == 0 and (line.endswith(('}', ';')) or (case and case_ends(lines, i) == i))
            names = re.findall(r'(\w+)\s*[(\[=;]', outside)
        if ended:
            found.append((names, case and case.group(1), '\n'.join(lines[first:i + 1])))
            first = None
    return found


def with_helpers(text, known):
    """The text and those of the definitions of its file that it uses, directly or not."""
    used, todo = [text], [text]
    while todo:
        for word in set(re.findall(r'\w+', todo.pop())):
            for definition in known.get(word, ()):
                if definition not in used:
                    used.append(definition)
                    todo.append(definition)
    return used


def cases_with_helpers(folder):
    """{case: [[text]]}: per file that has a case of the name."""
    cases = {}
    for path in sources(folder):
        known, found = {}, definitions(read(path))
        for names, case, text in found:
            for name in () if case else names:
                known.setdefault(name, []).append(text)
        for _, case, text in found:
            if case:
                cases.setdefault(case, []).append(with_helpers(text, known))
    return cases


class Spellings:
    """The names that a status has: the interfaces give one value names of their own each."""

    def __init__(self, *folders):
        self.values, aliases = {}, []
        for path in sources(*folders):
            text = read(path)
            for name, value in re.findall(r'#define\s+(\w+)\s[^\n]*?\b(0x[0-9a-fA-F]{8})[UL]*\b', text):
                self.values.setdefault(name, int(value, 16))
            aliases += re.findall(r'#define\s+(\w+)\s+\(?(?:\(\w+\))?(\w+)\)?\s*(?:/\*.*)?$', text, re.M)
        for name, other in aliases:
            if other in self.values:
                self.values.setdefault(name, self.values[other])

    def pattern(self, status):
        value = int(status, 16) if status.startswith('0x') else self.values.get(status)
        names = {status} | {name for name, its in self.values.items() if its == value}
        return re.compile(r'\b(?:' + '|'.join(map(re.escape, names)) + r')\b')


def words(text):
    """The words that the identifiers of a text are made of, but of constants."""
    found = []
    for name in re.findall(r'[A-Za-z]\w*', text):
        if not re.fullmatch(r'[A-Z0-9_]+|(?:FAKE|IBV|RDMA)_\w+', name):
            found += [word.lower() for word in re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+', name)]
    line = ' '.join(found)
    for name, short in SHORT.items():
        line = line.replace(name, short)
    return set(line.split())


def asserts(case, texts, method, pattern, methods):
    """Does the case speak of the method, and of the status in a table, or together with it or with no other method?
    `methods`: {method: its words}. None: yes; else what is wrong."""
    own = words(method)
    if not own <= words(case + ' ' + ' '.join(texts)):
        return f'it does not call {method}'
    only = set()
    for text in texts:
        for statement in re.split(r'[;{}]', text):
            if not pattern.search(statement):
                continue
            said = words(statement)
            others = {name for name, its in methods.items() if its <= said and not its <= own}
            if own <= said or not others:
                return None
            only |= others
    return f'it has the status of {", ".join(sorted(only))} only' if only else 'it does not have the status'


def locks(*folders):
    """(path, name) of the locks that a C file defines or has as a member."""
    for path in sources(*folders):
        for line in blank_comments(read(path)).splitlines():
            match = re.match(r'(?:static )?\s*(?:_Alignas\(\w+\) )?(?:pthread_(?:mutex|rwlock|spinlock)_t|struct (?:wordlock|gate)) '
                             r'(\w+)(?:\[\w+\])?(?: =.*)?;\s*$', line)
            if match:
                yield path, match.group(1)
