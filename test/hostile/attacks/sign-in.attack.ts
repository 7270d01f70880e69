import { randomUUID } from 'node:crypto';
import { SignJWT, UnsecuredJWT } from 'jose';
import { CLIENT_ID, FakeOidcIssuer } from '../../fakes/fake-oidc-issuer.js';
import { SignInBrowser } from '../../support/sign-in-browser.js';
import { type Attack, held, ofService } from '../attack.js';
import type { HostileWorld } from '../support/hostile-world.js';

const SESSION = 'slipway_session';
const LOGIN = 'slipway_login';
const MADE_UP_SESSION = `ses_AAAAAAAA_${'A'.repeat(43)}`;
const MAP = { OIDC_ROLE_MAP: 'ops=admin,dev=member', OIDC_DEFAULT_ROLE: 'none' };
const FOREIGN_ORIGINS = [
  'http://localhost:1',
  'https://evil.example',
  'null',
  'http://worker-1-x.localhost:3000',
];
/** What a page may go on at, were it not the service's. */
const FOREIGN_PAGES = [
  'https://evil.example/',
  '//evil.example/',
  '/\\evil.example',
  '/\t/evil.example',
  '/console//../..//evil.example/',
  'javascript:alert(1)',
  '/console/" onload="alert(1)',
];

type Claims = Record<string, unknown>;

/** What is tried, and whether it has got through. */
type Way = [name: string, succeeds: () => Promise<boolean>];

export const signIn: Attack = {
  name: 'sign-in',
  finding: 'held',
  what: "Bob gets at Alice's session, gets her into his, or makes himself another one by what he has of sign-ins: planted cookies, pages of his, codes, states, tokens and claims.",
  expected: ofService(held('each is refused, and the session of the right person is a new one')),
  run: async (world) => {
    const [issuer, other] = await Promise.all([FakeOidcIssuer.start(), FakeOidcIssuer.start()]);
    try {
      const environment = { ...issuer.environment, ...MAP };
      return await world.apart({ environment, sandboxes: false }, async (apart) =>
        new SignIns(apart, issuer, other).attack(),
      );
    } finally {
      await Promise.all([issuer, other].map(async ({ server }) => server.close()));
    }
  },
};

class SignIns {
  constructor(
    private readonly world: HostileWorld,
    private readonly issuer: FakeOidcIssuer,
    /** Of Bob, who signs there what he likes. */
    private readonly other: FakeOidcIssuer,
  ) {}

  async attack(): Promise<{ held: boolean; seen: string }> {
    await this.requireHonest();
    const ways = [
      ...this.fixations(),
      ...this.loginsOfBob(),
      ...this.foreignPages(),
      ...this.exchangedAnswers(),
      ...this.replays(),
      ...this.idTokens(),
      ...this.bearerTokens(),
      ...this.claims(),
    ];
    const through: string[] = [];
    for (const [name, succeeds] of ways) {
      if (await succeeds()) {
        through.push(name);
      }
    }
    return { held: through.length === 0, seen: `of ${ways.length} ways: ${through.join(', ') || 'none'}` };
  }

  /** @throws Error where nothing is refused because nothing works at all */
  private async requireHonest(): Promise<void> {
    const who = this.newcomer({ groups: ['ops'] });
    await who.signIn();
    const { status } = await this.byToken({ groups: ['ops'] });
    if ((await who.user())?.is_admin !== true || status !== 200) {
      throw new Error('not even who may signs in');
    }
  }

  private browser(): SignInBrowser {
    return new SignInBrowser(this.world.url);
  }

  /** The browser of a person of whom the issuer says this from now on. */
  private newcomer(claims: Claims = {}): SignInBrowser {
    const id = randomUUID();
    const person = { sub: id, email: `${id}@example.com`, groups: ['dev'], ...claims };
    Object.assign(this.issuer.state, { person, userInfo: {}, sid: id, tamper: null });
    return this.browser();
  }

  /** A sign-in whose callback is not as the issuer has sent it. */
  private async isIn(who: SignInBrowser, change: (callback: URLSearchParams) => void): Promise<boolean> {
    const { pathname, searchParams } = new URL(await who.begin(), this.world.url);
    change(searchParams);
    await who.get(`${pathname}?${searchParams.toString()}`);
    return (await who.user()) !== null;
  }

  private async ask(token: string): Promise<Response> {
    return fetch(`${this.world.url}/api/v1/users`, { headers: { Authorization: `Bearer ${token}` } });
  }

  private async byToken(claims: Claims, header?: Claims): Promise<Response> {
    const { person } = this.issuer.state;
    return this.ask(await this.issuer.accessToken({ ...person, ...claims }, header));
  }

  private fixations(): Way[] {
    const byIssuer = async (who: SignInBrowser): Promise<unknown> => who.signIn();
    const byKey = async (who: SignInBrowser): Promise<unknown> => who.signInWith(this.world.alice.client.key);
    const withOneOfBob = (signsIn: typeof byIssuer) => async (): Promise<boolean> => {
      const [bob, victim] = [this.browser(), this.newcomer()];
      await bob.signInWith(this.world.bob.client.key);
      victim.cookies.set(SESSION, bob.cookies.get(SESSION) ?? '');
      await signsIn(victim);
      return (await victim.user()) === null || (await victim.user())?.id === (await bob.user())?.id;
    };
    const withMadeUp = (signsIn: typeof byIssuer) => async (): Promise<boolean> => {
      const [bob, victim] = [this.browser(), this.newcomer()];
      [bob, victim].forEach(({ cookies }) => cookies.set(SESSION, MADE_UP_SESSION));
      await signsIn(victim);
      return (await bob.user()) !== null || victim.cookies.get(SESSION) === MADE_UP_SESSION;
    };
    const withTwo = (isFirst: boolean) => async (): Promise<boolean> => {
      const [bob, victim] = [this.browser(), this.browser()];
      await bob.signInWith(this.world.bob.client.key);
      await byKey(victim);
      const cookies = isFirst ? [bob.cookie, victim.cookie] : [victim.cookie, bob.cookie];
      const headers = { Cookie: cookies.join('; ') };
      return (await fetch(`${this.world.url}/api/v1/api-keys`, { headers })).ok;
    };
    return [
      ['a planted session of Bob, by the issuer', withOneOfBob(byIssuer)],
      ['a planted session of Bob, by a key', withOneOfBob(byKey)],
      ['a made-up session, by the issuer', withMadeUp(byIssuer)],
      ['a made-up session, by a key', withMadeUp(byKey)],
      ['a session of Bob before that of Alice', withTwo(true)],
      ['a session of Bob after that of Alice', withTwo(false)],
    ];
  }

  /** Login CSRF: a browser of Alice that is Bob's user. */
  private loginsOfBob(): Way[] {
    const { key } = this.world.bob.client;
    const send = (method: string, type: string, body?: string) => async (): Promise<boolean> => {
      const address = `${this.world.url}/auth/key${body === undefined ? `?key=${key}` : ''}`;
      const { headers } = await fetch(address, {
        method,
        headers: { 'Content-Type': type },
        ...(body !== undefined && { body }),
      });
      return headers.getSetCookie().length > 0;
    };
    return [
      [
        'his callback in a browser that began its own',
        async () => {
          const [callback, victim] = [await this.newcomer().begin(), this.browser()];
          await victim.begin();
          await victim.get(callback);
          return (await victim.user()) !== null;
        },
      ],
      ...FOREIGN_ORIGINS.flatMap((origin): Way[] => [
        [
          `his key by a page of ${origin}`,
          async () => {
            const victim = this.browser();
            await victim.signInWith(key, origin);
            return victim.cookies.size > 0;
          },
        ],
      ]),
      ['his key by a form', send('POST', 'application/x-www-form-urlencoded', `key=${key}`)],
      ['his key by a form of text', send('POST', 'text/plain', JSON.stringify({ key }))],
      ['his key by an address', send('GET', 'text/plain')],
    ];
  }

  private foreignPages(): Way[] {
    return FOREIGN_PAGES.map((address) => [
      `going on at ${JSON.stringify(address)}`,
      async () => {
        const page = await this.newcomer().signIn(`/auth/login?return_to=${encodeURIComponent(address)}`);
        const [, path] = /content="0; url=([^"]*)"/.exec(page.text) ?? [];
        return path === undefined || new URL(path, this.world.url).origin !== new URL(this.world.url).origin;
      },
    ]);
  }

  /** Mix-up of issuers (RFC 9207), and what is of another sign-in. */
  private exchangedAnswers(): Way[] {
    return [
      [
        'an answer of another issuer',
        async () => this.isIn(this.newcomer(), (callback) => callback.set('iss', this.other.issuer)),
      ],
      [
        'the code of another sign-in',
        async () => {
          const stolen = new URL(await this.newcomer().begin(), this.world.url).searchParams;
          return this.isIn(this.browser(), (callback) => callback.set('code', stolen.get('code') ?? ''));
        },
      ],
      [
        'a state of his own',
        async () => this.isIn(this.newcomer(), (callback) => callback.set('state', 'x'.repeat(43))),
      ],
      ['no state', async () => this.isIn(this.newcomer(), (callback) => callback.delete('state'))],
    ];
  }

  private replays(): Way[] {
    return [
      [
        'the callback once more, with its cookie',
        async () => {
          const [who, thief] = [this.newcomer(), this.browser()];
          const callback = await who.begin();
          thief.cookies.set(LOGIN, who.cookies.get(LOGIN) ?? '');
          await who.get(callback);
          await thief.get(callback);
          return (await thief.user()) !== null;
        },
      ],
      [
        'the state once more, in its browser',
        async () => {
          const who = this.newcomer();
          const { searchParams: first } = new URL(await who.begin(), this.world.url);
          await who.get(`/auth/callback?${first.toString()}`);
          who.cookies.delete(SESSION);
          const { searchParams: second } = new URL(await this.browser().begin(), this.world.url);
          first.set('code', second.get('code') ?? '');
          await who.get(`/auth/callback?${first.toString()}`);
          return (await who.user()) !== null;
        },
      ],
      [
        'the state once more with a fresh code, and its cookie',
        async () => {
          const [who, thief] = [this.newcomer(), this.browser()];
          const callback = await who.begin();
          thief.cookies.set(LOGIN, who.cookies.get(LOGIN) ?? '');
          await who.get(callback);
          const { searchParams } = new URL(callback, this.world.url);
          const fresh = new URL(await this.browser().begin(), this.world.url).searchParams;
          searchParams.set('code', fresh.get('code') ?? '');
          await thief.get(`/auth/callback?${searchParams.toString()}`);
          return (await thief.user()) !== null;
        },
      ],
      [
        'an ID token of before, whose nonce was used',
        async () => {
          const who = this.newcomer();
          let seen = '';
          this.issuer.state.tamper = async (token) => (seen = token);
          await who.signIn();
          this.issuer.state.tamper = async () => seen;
          const thief = this.browser();
          await thief.signIn();
          return (await thief.user()) !== null || seen === '';
        },
      ],
    ];
  }

  private idTokens(): Way[] {
    const withClaims = (claims: Claims) => async (): Promise<boolean> => {
      const who = this.newcomer(claims);
      await who.signIn();
      return (await who.user()) !== null;
    };
    const tampered = (change: (claims: Claims) => Promise<string>) => async (): Promise<boolean> => {
      const who = this.newcomer();
      this.issuer.state.tamper = async (token) => change(claimsIn(token));
      await who.signIn();
      return (await who.user()) !== null;
    };
    const { kid } = this.issuer.currentKey;
    return [
      ['an ID token without a nonce', withClaims({ nonce: undefined })],
      ['an ID token for another', withClaims({ aud: 'other' })],
      ['an ID token for several, of another', withClaims({ aud: [CLIENT_ID, 'other'], azp: 'other' })],
      ['an ID token of another issuer', withClaims({ iss: this.other.issuer })],
      ['an ID token that has ended', withClaims({ exp: 1 })],
      ['an ID token by another key', tampered(async (claims) => this.other.sign(claims, { kid }))],
      ['an ID token by no key', tampered(async (claims) => new UnsecuredJWT(claims).encode())],
      ['an ID token by its public key', tampered(async (claims) => this.signedByPublicKey(claims))],
    ];
  }

  /** Each says that Bob is an administrator. */
  private bearerTokens(): Way[] {
    const claims = (): Claims => ({
      sub: randomUUID(),
      groups: ['ops'],
      aud: 'slipway-api',
      iss: this.issuer.issuer,
      exp: Math.floor(Date.now() / 1000) + 3_600,
    });
    const isTaken = (make: () => Promise<string>) => async (): Promise<boolean> =>
      (await this.ask(await make())).status !== 401;
    const header = { alg: 'RS256', typ: 'at+jwt', kid: this.issuer.currentKey.kid };
    const sign = async (all: Claims, by?: Claims): Promise<string> => this.issuer.sign(all, by);
    return [
      ['a token for nobody', isTaken(async () => sign({ ...claims(), aud: undefined }, header))],
      ['an ID token for a client of that name', isTaken(async () => sign(claims(), { typ: 'JWT' }))],
      ['a token by no key', isTaken(async () => new UnsecuredJWT(claims()).encode())],
      ['a token by the public key', isTaken(async () => this.signedByPublicKey(claims()))],
      ['a token by another key', isTaken(async () => this.other.sign(claims(), header))],
      [
        'a token by a key that it brings along',
        async () => {
          const { publicJwk: jwk } = this.other.currentKey;
          const [jku, x5u] = [`${this.other.issuer}/jwks`, `${this.other.issuer}/x5u`];
          const { status } = await this.ask(await this.other.sign(claims(), { ...header, jwk, jku, x5u }));
          return status !== 401 || this.other.server.requests.length > 0;
        },
      ],
      [
        'a token that says what is not understood',
        isTaken(async () =>
          new SignJWT(claims())
            .setProtectedHeader({ ...header, crit: ['made-up'], 'made-up': 1 })
            .sign(this.issuer.currentKey.privateKey, { crit: { 'made-up': true } }),
        ),
      ],
    ];
  }

  /** What the issuer did sign, for other ends: Bob may choose his name and address there. */
  private claims(): Way[] {
    const administers =
      (claims: Claims, userInfo: Claims = {}) =>
      async (): Promise<boolean> => {
        const who = this.newcomer(claims);
        Object.assign(this.issuer.state.userInfo, userInfo);
        await who.signIn();
        return (await who.user())?.is_admin === true || (await this.byToken({})).ok;
      };
    const isSomebody = (find: () => Promise<string>) => async (): Promise<boolean> => {
      const email = await find();
      const who = this.newcomer({ email, email_verified: true });
      await who.signIn();
      return (await who.user())?.email === email;
    };
    const addressOf = (key: () => string) => async (): Promise<string> => {
      const who = this.browser();
      await who.signInWith(key());
      return (await who.user())?.email ?? '';
    };
    const roles = { role: 'admin', roles: ['ops'], is_admin: true, realm_access: { roles: ['ops'] } };
    return [
      ['a role in other claims', administers({ ...roles, scope: 'admin', 'groups.0': 'ops' })],
      ['a group that is nearly one', administers({ groups: ['dev', 'OPS', 'ops ', 'ops,dev', ['ops']] })],
      [
        'a role of another at the userinfo endpoint',
        administers({ groups: undefined }, { sub: 'x', groups: ['ops'] }),
      ],
      [
        'a role that the userinfo endpoint says besides',
        administers({ groups: ['dev'] }, { groups: ['ops'] }),
      ],
      ['the address of Alice', isSomebody(addressOf(() => this.world.alice.client.key))],
      ['the address of the administrator', isSomebody(addressOf(() => this.world.admin.key))],
    ];
  }

  /** HS256 with the public key as its secret. */
  private async signedByPublicKey(claims: Claims): Promise<string> {
    const { kid, publicJwk } = this.issuer.currentKey;
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid })
      .sign(Buffer.from(JSON.stringify(publicJwk)));
  }
}

function claimsIn(token: string): Claims {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
}
