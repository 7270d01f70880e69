import { startFakeBitbucket } from '../../fakes/fake-bitbucket.js';
import { startFakeGitlab } from '../../fakes/fake-gitlab.js';
import type { FakeServer } from '../../fakes/fake-server.js';
import { text } from '../../system/journeys/support/api-client.js';
import { JourneyWorld } from '../../system/journeys/support/journey-world.js';

/** Nothing listens there: no request leaves this machine. */
const NOWHERE = 'http://127.0.0.1:1';

/** Little of what costs time, since what is started is real. */
const ENVIRONMENT = {
  MAX_RUNNING_SANDBOXES: '2',
  SANDBOX_LIMIT_POLICY: 'reject',
  SANDBOX_WAIT_SECONDS: '1',
  HTTPS_PROXY: NOWHERE,
  WEBHOOK_HOST_ALLOWLIST: '*.example.com',
};

/** The built service with stand-ins for the git hosts, and an administrator who has something of everything. */
export class FuzzWorld {
  private constructor(
    readonly journey: JourneyWorld,
    private readonly hosts: readonly FakeServer[],
    /** Of the administrator. */
    readonly sandboxId: string,
  ) {}

  static async open(): Promise<FuzzWorld> {
    const journey = await JourneyWorld.open({ embedded: true });
    const hosts: FakeServer[] = [];
    try {
      const [gitlab, bitbucket] = [await startFakeGitlab(journey.hub), await startFakeBitbucket(journey.hub)];
      hosts.push(gitlab, bitbucket);
      await journey.start({
        ...ENVIRONMENT,
        GITLAB_API_URL: gitlab.origin,
        BITBUCKET_API_URL: bitbucket.origin,
      });
      return new FuzzWorld(journey, hosts, await settle(journey));
    } catch (error) {
      await close(journey, hosts);
      throw error;
    }
  }

  /** Lines that the service has logged as errors. */
  errors(): string[] {
    return this.journey.logLines.filter((line) => line.includes('"level":"error"'));
  }

  async close(): Promise<void> {
    await close(this.journey, this.hosts);
  }
}

/** @returns the administrator's sandbox, in which a conversation has been held */
async function settle(journey: JourneyWorld): Promise<string> {
  const { admin } = journey;
  await admin.saveSettings(journey.modelSettings());
  await journey.giveToken(admin);
  await admin.post('/api/secrets', { name: 'DEPLOY_TOKEN', value: journey.secrets.plant('custom secret') });
  await admin.post('/api/v1/webhook-endpoints', { url: 'https://ci.example.com/slipway' });
  const { id, sandboxId } = await admin.started({});
  await admin.say(id, 'Hello.');
  await admin.conversationIn(id, 'idle', 'finished');
  return text(await admin.sandbox(sandboxId), 'id');
}

async function close(journey: JourneyWorld, hosts: readonly FakeServer[]): Promise<void> {
  // Answers to generated requests may hold whatever those had in them.
  await journey.close({ secretsMayShow: true });
  await Promise.all(hosts.map((host) => host.close()));
}
