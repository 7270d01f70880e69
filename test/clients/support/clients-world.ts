import { randomBytes } from 'node:crypto';
import type { FakeWorld } from '../../fakes/fake-world.js';
import { type ApiClient, text } from '../../system/journeys/support/api-client.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';
import { clientsModel } from './clients-model.js';

export const REPOSITORY = 'quayside/storefront';
export const CHANGE_REQUEST = 'Retry the address lookup once before giving up';

const HOUR_MS = 3_600_000;
const FILES = {
  'README.md': '# Storefront\n\n`sh check.sh` runs the checks.\n',
  'AGENTS.md': 'Run `sh check.sh` before every commit.\n',
  'lookup.sh':
    'attempts=0\nlimit=1\nwhile [ "$attempts" -lt "$limit" ]; do\n  attempts=$((attempts + 1))\ndone\necho "$attempts"\n',
  'check.sh':
    'tried=$(sh lookup.sh)\n[ "$tried" -eq 2 ] && echo "ok: 2 attempts" || { echo "FAIL: got $tried"; exit 1; }\n',
  '.openhands/microagents/repo.md': '---\nname: repo\ntype: repo\n---\nChecks are in check.sh.\n',
};

/** The built service with a git host, a git server and a model beside it, for clients that run as processes of their own. */
export class ClientsWorld {
  private constructor(
    readonly journey: JourneyWorld,
    /** Where screenshots go. */
    readonly shots: string,
  ) {}

  /** @param environment variables of the service besides those of a journey */
  static async open(shots: string, environment: Record<string, string>): Promise<ClientsWorld> {
    const journey = await JourneyWorld.open({ embedded: true });
    try {
      Object.assign(journey.hub, storefront(journey.hub.token, Date.now()));
      journey.llm.script = clientsModel;
      await journey.git.commit(REPOSITORY, 'main', FILES);
      await journey.git.commit(REPOSITORY, 'retry-lookup', {
        'NOTES.md': 'The second try is for hiccups.\n',
      });
      await journey.start(environment);
      return new ClientsWorld(journey, shots);
    } catch (error) {
      await journey.close({ secretsMayShow: true });
      throw error;
    }
  }

  /** `http://127.0.0.1:PORT` of the service. */
  get url(): string {
    return this.journey.url;
  }

  /** A user with nothing but a key. */
  async newcomer(): Promise<{ key: string; api: ApiClient }> {
    const { admin } = this.journey;
    const email = `${randomBytes(6).toString('hex')}@example.com`;
    const userId = text(await admin.post('/api/v1/users', { email }), 'id');
    const key = text(await admin.post('/api/v1/api-keys', { name: 'client', user_id: userId }), 'key');
    this.journey.secrets.know('API key', key);
    return { key, api: this.journey.clientOf(key) };
  }

  /** A user whose model and git host are set up. */
  async settledUser(): Promise<{ key: string; api: ApiClient }> {
    const api = await this.journey.createUser();
    await this.journey.giveToken(api);
    return { key: api.key, api };
  }

  /** Gives a newcomer a model and a git host. */
  async settle(api: ApiClient): Promise<void> {
    await api.saveSettings(this.journey.modelSettings());
    await this.journey.giveToken(api);
  }

  /** @throws Error when a secret is where it must not be */
  async close(): Promise<void> {
    await this.journey.close();
  }
}

/** The open work of a developer at a small shipping company. */
function storefront(token: string, now: number): FakeWorld {
  const ago = (hours: number) => new Date(now - hours * HOUR_MS).toISOString();
  return {
    token,
    user: { id: '20817', login: 'nadia', name: 'Nadia Okafor', email: 'nadia@quayside.example' },
    repositories: [
      {
        name: REPOSITORY,
        activeAt: ago(1),
        rootEntries: ['README.md', 'AGENTS.md'],
        branches: ['retry-lookup'],
      },
      { name: 'quayside/label-printer', activeAt: ago(5) },
      { name: 'nadia/dotfiles', activeAt: ago(30), rootEntries: ['README.md', 'CLAUDE.md'] },
    ],
    changeRequests: [
      {
        repository: REPOSITORY,
        number: 479,
        title: CHANGE_REQUEST,
        updatedAt: ago(3),
        conflicts: 'no',
        checks: 'failing',
        sourceBranch: 'retry-lookup',
      },
      {
        repository: REPOSITORY,
        number: 482,
        title: 'Show delivery windows in the customer’s time zone',
        updatedAt: ago(1),
        conflicts: 'yes',
        checks: 'failing',
      },
    ],
    issues: [
      {
        repository: REPOSITORY,
        number: 471,
        title: 'Postcode field rejects codes with a leading zero',
        updatedAt: ago(4),
      },
    ],
  };
}
