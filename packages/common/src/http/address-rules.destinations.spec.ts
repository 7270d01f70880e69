import { describe, expect, it } from '@jest/globals';
import { destinationsOf, parseDestination } from './address-rules.js';

describe('parseDestination', () => {
  it('reads hosts, ports and ranges', () => {
    expect(parseDestination('10.20.0.0/16')).toEqual({ kind: 'range', range: '10.20.0.0/16' });
    expect(parseDestination('localhost:11434')).toEqual({ kind: 'host', host: 'localhost', port: 11_434 });
    expect(parseDestination('git.example.com')).toEqual({
      kind: 'host',
      host: 'git.example.com',
      port: null,
    });
  });

  it.each(['', 'localhost', '127.0.0.1', '10.0.0.0/33', 'a b', 'host:0', 'host:65536', 'http://host', '-x'])(
    'refuses %j',
    (text) => expect(parseDestination(text)).toBeNull(),
  );
});

describe('destinationsOf', () => {
  it.each([
    ['http://10.0.0.5', ['10.0.0.5:80']],
    ['https://git.example.com/x', ['git.example.com:443']],
    ['proxy.corp:3128', ['proxy.corp:3128']],
    ['http://user:secret@127.0.0.1:3128', ['127.0.0.1:3128']],
    ['http://[::1]:3000/api', []],
    ['https://[fd00::5]', []],
    ['http://:', []],
  ])('%s: %j', (address, entries) => {
    expect(destinationsOf(address)).toEqual(entries);
  });
});
