import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { ARRIVAL_SCRIPT, webAppLink } from './web-app-link.js';

const KEY = 'slw_k3y+/=&%';
const HOME = 'http://localhost:3000';

describe('webAppLink', () => {
  it('has the key where nobody but this machine reaches the service', () => {
    expect(webAppLink(HOME, '127.0.0.1', KEY)).toBe(`${HOME}/#key=${encodeURIComponent(KEY)}`);
  });

  it.each([
    ['others reach it', HOME, '0.0.0.0', KEY],
    ['others reach it by another name', 'https://slipway.example.com', '127.0.0.1', KEY],
    ['there is none', HOME, '127.0.0.1', null],
  ])('has no key where %s', (_why, address, host, key) => {
    expect(webAppLink(address, host, key)).toBe(`${address}/`);
  });
});

describe('the arrival at the web application', () => {
  it('puts the key where the application keeps those that are typed in, and takes it out of the address', () => {
    const page = arrive(webAppLink(HOME, '127.0.0.1', KEY));

    expect(JSON.parse(page.local.get('openhands-backends') ?? '')).toEqual([
      { id: 'slipway', name: 'Slipway', kind: 'cloud', authMode: 'api-key', host: HOME, apiKey: KEY },
    ]);
    expect(JSON.parse(page.session.get('openhands-active-backend') ?? '')).toEqual({
      backendId: 'slipway',
      orgId: null,
    });
    expect(page.shown).toBe('/');
  });

  it('replaces an older key and keeps other backends', () => {
    const other = {
      id: 'other',
      name: 'Elsewhere',
      kind: 'local',
      host: 'http://localhost:8000',
      apiKey: 'x',
    };
    const page = arrive(`${HOME}/settings#key=newer`, [{ ...other, id: 'slipway' }, other]);

    expect(JSON.parse(page.local.get('openhands-backends') ?? '')).toEqual([
      expect.objectContaining({ id: 'slipway', apiKey: 'newer' }),
      other,
    ]);
    expect(page.shown).toBe('/settings');
  });

  it.each(['', '#key', '#section'])('leaves everything alone with the fragment %p', (fragment) => {
    const page = arrive(`${HOME}/${fragment}`);

    expect(page.local.size).toBe(0);
    expect(page.shown).toBeNull();
  });

  it('is overwritten by nothing broken that is stored', () => {
    const page = arrive(`${HOME}/#key=k`, 'broken');

    expect(JSON.parse(page.local.get('openhands-backends') ?? '')).toHaveLength(1);
  });
});

describe('the key for requests through the own origin', () => {
  const elsewhere = { id: 'a', kind: 'cloud', host: 'http://localhost:8000', apiKey: 'other' };

  it('is that of the link', () => {
    expect(arrive(`${HOME}/#key=k`, [elsewhere]).key()).toBe('k');
  });

  it('is the one that was typed in, as soon as it is stored', () => {
    const page = arrive(HOME, [elsewhere]);
    expect(page.key()).toBeUndefined();

    page.local.set(
      'openhands-backends',
      JSON.stringify([elsewhere, { ...elsewhere, host: `${HOME}/`, apiKey: 'typed' }]),
    );

    expect(page.key()).toBe('typed');
  });

  it.each([undefined, 'broken', [{ ...elsewhere, kind: 'local', host: HOME }]])(
    'is none with %j stored',
    (stored) => {
      expect(arrive(HOME, stored).key()).toBeUndefined();
    },
  );
});

/** Runs the script as a page at this address does. */
function arrive(
  address: string,
  stored?: unknown,
): { local: Map<string, string>; session: Map<string, string>; shown: string | null; key: () => unknown } {
  const local = new Map(stored === undefined ? [] : [['openhands-backends', JSON.stringify(stored)]]);
  const session = new Map<string, string>();
  const { origin, pathname, search, hash } = new URL(address);
  let shown: string | null = null;
  const window = {};
  runInNewContext(ARRIVAL_SCRIPT, {
    window,
    location: { origin, pathname, search, hash },
    history: {
      replaceState: (_state: unknown, _title: string, url: string) => {
        shown = url;
      },
    },
    localStorage: storageOf(local),
    sessionStorage: storageOf(session),
  });
  return { local, session, shown, key: () => Reflect.get(window, '__AGENT_CANVAS_SESSION_API_KEY__') };
}

function storageOf(items: Map<string, string>) {
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  };
}
