"""Makes an archive of news items, one document of schema 1.6 a line, and realistic queries for it.

    python3 benches/compare/archive.py CORPUS COUNT items.jsonl [queries.json]

CORPUS is a folder with news texts as .jsonl or .jsonl.gz, each line an object with `headline`,
`text`, `body` or `paragraphs`, and `language`; every item is made of sentences of it, so that words
are as frequent as in the news. Names of persons and places, product codes, subjects and rare words
are drawn by Zipf's law from made-up lists. Dates lie in the 20 years before 2026-11-01. The same
arguments give the same archive.
"""
import bisect
import glob
import gzip
import itertools
import json
import os
import random
import re
import sys
import time

PRODUCTS, SUBJECTS, PERSONS, PLACES, HOLDERS, RARE = 300, 420, 20_000, 3_000, 200, 150_000
YEARS, END = 20, 1_793_491_200  # 2026-11-01T00:00:00Z
TYPES = [('image', 'picture', 46), ('text', 'text', 24), ('planning', 'planning', 7),
         ('video', 'video', 6), ('calendar', 'event', 5), ('feature', 'text', 5),
         ('graphic', 'graphic', 4), ('page', 'composite', 2), ('stockfoto', 'picture', 1)]
SYLLABLES = ('an ber cla da el fors gun hol ing jo karl lin mar nor ol pet quist ros stad stro sund '
             'sö tor ul vik wall åke ös än mi ka ra no li').split()


class Zipf:
    """Draws from a list, the n-th element as often as 1 / n."""

    def __init__(self, rng, values, exponent=1.0):
        self.rng, self.values = rng, values
        weights = (1 / (n + 2) ** exponent for n in range(len(values)))
        self.sums = list(itertools.accumulate(weights))

    def draw(self):
        return self.values[bisect.bisect(self.sums, self.rng.random() * self.sums[-1])]

    def draw_some(self, least, most):
        wanted = self.rng.randint(least, most)
        return list(dict.fromkeys(self.draw() for _ in range(wanted)))


def names(rng, count, parts):
    """Made-up names, each once."""
    found = {}
    while len(found) < count:
        words = [''.join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 3))).capitalize()
                 for _ in range(parts)]
        found[' '.join(words)] = None
    return list(found)


def sentences(corpus):
    """The sentences of the corpus by language."""
    found = {}
    paths = sorted(glob.glob(os.path.join(corpus, '*.jsonl')) + glob.glob(os.path.join(corpus, '*.jsonl.gz')))
    for path in paths:
        with (gzip.open if path.endswith('.gz') else open)(path, 'rt', encoding='utf-8') as lines:
            for line in lines:
                text = json.loads(line)
                parts = text.get('paragraphs') or text.get('body') or [text.get('text', '')]
                for part in parts if isinstance(parts, list) else [parts]:
                    for sentence in re.split(r'(?<=[.!?])\s+', part):
                        if 20 < len(sentence) < 400:
                            found.setdefault(text.get('language', 'en'), []).append(sentence)
    return found


class Archive:
    def __init__(self, corpus, seed=1):
        rng = self.rng = random.Random(seed)
        self.sentences = sentences(corpus)
        # Swedish news first, as at a Swedish agency; English is much of the corpus.
        self.languages = [('sv', 55), ('en', 30), ('nb', 5), ('da', 4), ('fi', 3), ('de', 3)]
        codes = (f'{a}{b}{c}' for a in ('FO', 'TX', 'VI', 'GR', 'SP', 'FE') for b in 'ABCDEFGHIJ' for c in
                 ('INR', 'UTR', 'EKO', 'KLT', 'SPT', 'NOJ'))
        self.products = Zipf(rng, list(itertools.islice(codes, PRODUCTS)))
        self.subjects = Zipf(rng, [f'{1 + n % 17:02}{n // 17:03}000' for n in range(SUBJECTS)])
        self.persons = Zipf(rng, names(rng, PERSONS, 2))
        self.places = Zipf(rng, names(rng, PLACES, 1))
        self.holders = Zipf(rng, names(rng, HOLDERS, 1), 1.3)
        self.rare = Zipf(rng, [''.join(rng.choices('abdefghijklmnoprstuvyåäö', k=rng.randint(5, 11)))
                               for _ in range(RARE)], 0.8)
        self.types = [(name, kind) for name, kind, _ in TYPES]
        self.type_weights = list(itertools.accumulate(weight for _, _, weight in TYPES))

    def time(self):
        # More of late than of old, as archives grow.
        age = self.rng.random() ** 1.5 * YEARS * 365.25 * 86_400
        return END - int(age)

    def text(self, language, least, most):
        chosen = self.rng.choices(self.sentences[language], k=self.rng.randint(least, most))
        return ' '.join(chosen + [' '.join(self.rare.draw_some(1, 3)) + '.'])

    def item(self, number):
        rng = self.rng
        media_type, kind = rng.choices(self.types, cum_weights=self.type_weights)[0]
        language = rng.choices([name for name, _ in self.languages], [weight for _, weight in self.languages])[0]
        at = self.time()
        stamp = time.strftime('%Y-%m-%dT%H:%M:%S+00:00', time.gmtime(at))
        item_id = f'a{number:07}'
        place, person = self.places.draw_some(1, 2), self.persons.draw_some(0, 3)
        headline = rng.choice(self.sentences[language]).split()[:rng.randint(4, 10)]
        holder = self.holders.draw()
        document = {
            'uri': f'http://archive.example/media/{media_type}/{item_id}', 'type': kind, 'profile': 'PUBL', 'version': '1',
            'versioncreated': stamp, 'date': stamp[:10], 'datetime': stamp, 'pubstatus': 'usable', 'urgency': 4, 'language': language,
            'copyrightholder': holder, 'source': holder, 'headline': ' '.join([place[0].upper()] + headline),
            'byline': f'{self.persons.draw()}/{holder}', 'slugline': self.rare.draw(),
            'person': [{'name': name, 'rel': 'mentions'} for name in person],
            'place': [{'name': name, 'rel': 'ort'} for name in place],
            'subject': [{'code': code, 'rel': 'classifies'} for code in self.subjects.draw_some(1, 3)],
            'product': [{'code': code, 'name': f'Product {code}'} for code in self.products.draw_some(1, 4)],
        }
        if media_type in ('text', 'feature', 'page'):
            document['body_text'] = self.text(language, 5, 12)
        else:
            document['description_text'] = self.text(language, 2, 4)
        if media_type in ('image', 'stockfoto'):
            href = f'{document["uri"]}_Normal'
            size = {'Hires': (5000, 3337), 'Preview': (1024, 683), 'Thumbnail': (256, 171)}
            document['renditions'] = {
                f'r{index:02}': {'usage': usage, 'variant': 'Normal', 'mimetype': 'image/jpeg',
                                 'href': f'{href}{usage}.jpg', 'width': width, 'height': height}
                for index, (usage, (width, height)) in zip((0, 1, 3), size.items())}
        return document

    def common_words(self):
        counts = {}
        for language in ('sv', 'en'):
            for sentence in self.sentences[language]:
                for word in re.findall(r'\w{2,}', sentence.lower()):
                    counts[word] = counts.get(word, 0) + 1
        return [word for word, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]

    def queries(self, count):
        """Queries as `{path, parameters, agreement}`; `agreement` is how many products the caller's has."""
        rng = self.rng
        words = self.common_words()
        word = Zipf(rng, words[:20_000], 0.7)
        facets = 'subject.code,product.code,place.name,person.name,copyrightholder'
        def phrase():
            parts = rng.choice(self.sentences['sv']).split()
            at = rng.randrange(max(1, len(parts) - 2))
            return '"' + ' '.join(re.sub(r'\W', '', part) or 'och' for part in parts[at:at + 2]) + '"'
        forms = [
            (14, lambda: word.draw()), (20, lambda: f'{word.draw()} {word.draw()}'), (6, lambda: ''),
            (8, lambda: f'{word.draw()} {word.draw()} {word.draw()}'), (6, lambda: f'{word.draw()} OR {word.draw()}'),
            (6, lambda: f'{word.draw()} -{word.draw()}'), (7, phrase), (7, lambda: f'person.name:"{self.persons.draw()}"'),
            (5, lambda: f'place.name:{self.places.draw()}'), (5, lambda: f'subject.code:{self.subjects.draw()}'),
            (4, lambda: f'headline:{word.draw()}'), (4, lambda: f'{word.draw()[:4]}*'), (3, lambda: self.subjects.draw()),
            (3, lambda: f'{word.draw()} AND ({word.draw()} OR {word.draw()})'), (2, lambda: f'versioncreated:[2015-01-01 TO 2019-06-30] {word.draw()}'),
        ]
        weights = list(itertools.accumulate(weight for weight, _ in forms))
        made = []
        for _ in range(count):
            query = rng.choices([form for _, form in forms], cum_weights=weights)[0]()
            while query.endswith('*') and len(query) < 4:
                query = f'{word.draw()[:4]}*'
            media_type = rng.choices(['_all', 'image', 'text', 'video', 'planning'], [35, 40, 18, 4, 3])[0]
            parameters = {'q': query} if query else {}
            if rng.random() < 0.25:
                year = rng.randint(2008, 2025)
                parameters.update(rng.choice([{'tr': 'y'}, {'tr': 'm'}, {'trs': f'{year}-01-01', 'tre': f'{year + 1}-01-01'},
                                              {'trs': f'{year}-03-01'}]))
            if rng.random() < 0.15:
                parameters['p'] = ','.join(self.products.draw_some(1, 3))
            if rng.random() < 0.12 and query:
                parameters['sort'] = 'relevance'
            elif rng.random() < 0.08:
                parameters['sort'] = rng.choice(['date:desc', 'versioncreated:asc', 'default:asc', 'versionstored:desc'])
            if rng.random() < 0.12:
                parameters['facets'] = facets
            if rng.random() < 0.1:
                parameters['fr'] = str(20 * rng.randint(1, 20))
            made.append({'path': f'/content/v1/{media_type}/search', 'parameters': parameters,
                         'agreement': 100 if rng.random() < 0.3 else 0})
        return made


def main():
    corpus, count, items, *queries = sys.argv[1:]
    archive = Archive(corpus)
    with open(items, 'w', encoding='utf-8') as out:
        for number in range(int(count)):
            out.write(json.dumps(archive.item(number), ensure_ascii=False, separators=(',', ':')) + '\n')
    if queries:
        made = {'products': archive.products.values[::3][:100], 'queries': archive.queries(1000)}
        with open(queries[0], 'w', encoding='utf-8') as out:
            json.dump(made, out, ensure_ascii=False, indent=1)


if __name__ == '__main__':
    main()
