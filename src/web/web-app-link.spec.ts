import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { ARRIVAL_SCRIPT, webAppLink } from './web-app-link.js';

const HOME = 'http://localhost:3000';
const LINK = `${HOME}/#code=c0de`;
const ADA = { api_key: 'slw_ada', user: { id: 'id-of-ada', email: 'ada@example.com' } };
const ELSEWHERE = {
  id: 'other',
  name: 'Elsewhere',
  kind: 'local',
  host: 'http://localhost:8000',
  apiKey: 'x',
};

describe('webAppLink', () => {
  it('has a code where nobody but this machine reaches the service', () => {
    expect(webAppLink(HOME, '127.0.0.1', () => 'c0de')).toBe(LINK);
  });

  it.each([
    ['others reach it', HOME, '0.0.0.0'],
    ['others reach it by another name', 'https://slipway.example.com', '127.0.0.1'],
  ])('has no code, and makes none, where %s', (_why, address, host) => {
    const issue = (): string => {
      throw new Error('nobody needs a code');
    };
    expect(webAppLink(address, host, issue)).toBe(`${address}/`);
    expect(webAppLink(address, host, null)).toBe(`${address}/`);
  });
});

describe('the arrival at the web application', () => {
  it('exchanges the code for a key, puts that where the application keeps keys, and takes the code out of the address', () => {
    const page = arrive(LINK);

    expect(page.sent).toEqual([['POST /auth/code/key', { code: 'c0de' }]]);
    expect(page.backends()).toEqual([
      { id: 'slipway', name: 'Slipway', kind: 'cloud', authMode: 'api-key', host: HOME, apiKey: 'slw_ada' },
    ]);
    expect(JSON.parse(page.session.get('openhands-active-backend') ?? '')).toEqual({
      backendId: 'slipway',
      orgId: null,
    });
    expect(page.shown).toBe('/');
    expect(page.questions).toEqual([]);
  });

  it('skips the welcome of the application for those whom the link has connected', () => {
    const skipped = ['openhands-onboarded', 'openhands-sidebar-onboarding-checklist-dismissed'];

    expect([...arrive(LINK).local.keys()]).toEqual(expect.arrayContaining(skipped));
    expect([...arrive(HOME).local.keys()]).toEqual([]);
  });

  it.each([
    ['of the same service', [{ ...ELSEWHERE, id: 'slipway', kind: 'cloud', host: HOME }]],
    ['of another service', [ELSEWHERE]],
  ])('asks with the name of the account before a stored key %s loses its place', (_whose, stored) => {
    const declined = arrive(LINK, { stored, consents: false });
    const accepted = arrive(LINK, { stored, consents: true });

    expect(declined.questions).toEqual([
      expect.stringMatching(/ada@example\.com \(id-of-ada\) at http:\/\/localhost:3000/),
    ]);
    expect(declined.backends()).toEqual(stored);
    expect([declined.session.size, declined.shown]).toEqual([0, '/']);
    expect(accepted.backends()[0]).toMatchObject({ id: 'slipway', apiKey: 'slw_ada' });
  });

  it('replaces its own older entry only, and asks nothing when the key is the same', () => {
    const mine = { ...ELSEWHERE, id: 'slipway', apiKey: 'older' };
    const replaced = arrive(`${HOME}/settings#code=c0de`, { stored: [mine, ELSEWHERE], consents: true });
    const same = arrive(LINK, { stored: [{ ...mine, apiKey: ADA.api_key }] });

    expect(replaced.backends()).toEqual([
      expect.objectContaining({ id: 'slipway', apiKey: 'slw_ada' }),
      ELSEWHERE,
    ]);
    expect(replaced.shown).toBe('/settings');
    expect(same.questions).toEqual([]);
  });

  it('leaves everything alone when the code is refused, and says so only where nothing is connected', () => {
    const connected = arrive(LINK, { stored: [ELSEWHERE], status: 401 });
    const fresh = arrive(LINK, { status: 401 });

    expect(connected.backends()).toEqual([ELSEWHERE]);
    expect(connected.told).toEqual([]);
    expect(fresh.local.size).toBe(0);
    expect(fresh.told).toEqual([expect.stringContaining('has been used')]);
  });

  it.each(['', '#key=slw_of-somebody-else', '#code', '#section'])(
    'asks for nothing and stores nothing with the fragment %p',
    (fragment) => {
      const page = arrive(`${HOME}/${fragment}`, { stored: [ELSEWHERE] });

      expect(page.sent).toEqual([]);
      expect(page.backends()).toEqual([ELSEWHERE]);
      expect(page.shown).toBeNull();
    },
  );

  it('is stopped by nothing broken that is stored', () => {
    expect(arrive(LINK, { stored: 'broken' }).backends()).toHaveLength(1);
  });
});

describe('the key for requests through the own origin', () => {
  const elsewhere = { id: 'a', kind: 'cloud', host: 'http://localhost:8000', apiKey: 'other' };

  it('is that of the link', () => {
    expect(arrive(LINK, { stored: [elsewhere], consents: true }).key()).toBe('slw_ada');
  });

  it('is the one that was typed in, as soon as it is stored', () => {
    const page = arrive(HOME, { stored: [elsewhere] });
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
      expect(arrive(HOME, { stored }).key()).toBeUndefined();
    },
  );
});

interface Arrival {
  stored?: unknown;
  /** What the user answers. */
  consents?: boolean;
  /** What the service answers. */
  status?: number;
}

interface ArrivedPage {
  local: Map<string, string>;
  session: Map<string, string>;
  shown: string | null;
  sent: unknown[];
  questions: string[];
  told: string[];
  backends: () => unknown[];
  key: () => unknown;
}

/** Runs the script as a page at this address does. */
function arrive(address: string, { stored, consents = false, status = 200 }: Arrival = {}): ArrivedPage {
  const local = new Map(stored === undefined ? [] : [['openhands-backends', JSON.stringify(stored)]]);
  const session = new Map<string, string>();
  const { origin, pathname, search, hash } = new URL(address);
  const [sent, questions, told]: [unknown[], string[], string[]] = [[], [], []];
  let shown: string | null = null;
  const window = {
    confirm: (question: string) => {
      questions.push(question);
      return consents;
    },
    alert: (text: string) => void told.push(text),
  };
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
    XMLHttpRequest: class {
      readonly status = status;
      readonly responseText = JSON.stringify(ADA);
      private line = '';
      open(method: string, path: string, isAsync: boolean): void {
        this.line = `${method} ${path}${isAsync ? ' later' : ''}`;
      }
      setRequestHeader(): void {
        // The service insists on JSON, which its own tests show.
      }
      send(body: string): void {
        sent.push([this.line, JSON.parse(body)]);
      }
    },
  });
  return {
    local,
    session,
    shown,
    sent,
    questions,
    told,
    backends: () => JSON.parse(local.get('openhands-backends') ?? '[]'),
    key: () => Reflect.get(window, '__AGENT_CANVAS_SESSION_API_KEY__'),
  };
}

function storageOf(items: Map<string, string>) {
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  };
}
