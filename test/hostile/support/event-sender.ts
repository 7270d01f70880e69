import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { jsonList, jsonText } from '@slipway/common/json-access.js';
import { type ApiClient, text } from '../../system/journeys/support/api-client.js';

const PATH = '/api/automation/v1';
const FOR_ANYONE = { secret_names: [], git: 'read' };

export interface Run {
  id: string;
  status: string;
  conversationId: string | null;
}

/** A git host that has the webhook of a user, and the automations of that user. */
export class EventSender {
  private constructor(
    private readonly client: ApiClient,
    /** Of the webhook. */
    readonly url: string,
    readonly secret: string,
  ) {}

  /** In place of those of earlier attacks. */
  static async create({ url }: { url: string }, client: ApiClient, source = 'github'): Promise<EventSender> {
    for (const each of jsonList(await client.get(`${PATH}?limit=100`), 'automations')) {
      if (jsonText(each, 'trigger', 'source') === source) {
        await client.remove(`${PATH}/${text(each, 'id')}`);
      }
    }
    for (const each of jsonList(await client.get(`${PATH}/webhooks?limit=100`), 'webhooks')) {
      if (jsonText(each, 'source') === source) {
        await client.remove(`${PATH}/webhooks/${text(each, 'id')}`);
      }
    }
    const secret = `secret-of-${source}-${randomBytes(12).toString('hex')}`;
    const given = { name: 'Host', source, webhook_secret: secret };
    const webhook = await client.post(`${PATH}/webhooks`, given);
    const { pathname } = new URL(text(webhook, 'webhook_url'));
    return new EventSender(client, `${url}${pathname}`, secret);
  }

  /** One that anybody starts. @returns its id */
  async automation(members: { trigger?: object; [member: string]: unknown }): Promise<string> {
    const trigger = { type: 'event', source: 'github', on: '*', from: 'anyone', ...members.trigger };
    const body = { name: 'Automation', prompt: 'say hello', ...FOR_ANYONE, ...members, trigger };
    return text(await this.client.post(`${PATH}/preset/prompt`, body), 'id');
  }

  /** As GitHub sends it, each time another one. */
  async deliver(payload: object, event = 'issues'): Promise<Response> {
    const body = Buffer.from(JSON.stringify({ ...payload, delivered: randomUUID() }));
    return this.send(body, { 'X-GitHub-Event': event, 'X-Hub-Signature-256': `sha256=${this.digest(body)}` });
  }

  /** Whatever it is signed with. */
  async send(body: Buffer, headers: Record<string, string>, url = this.url): Promise<Response> {
    return fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'X-GitHub-Event': 'issues',
        'X-GitHub-Delivery': randomUUID(),
        ...headers,
      },
      body: new Uint8Array(body),
    });
  }

  digest(body: Buffer, algorithm = 'sha256', secret = this.secret): string {
    return createHmac(algorithm, secret).update(body).digest('hex');
  }

  /** The newest first. */
  async runs(automationId: string): Promise<Run[]> {
    const page = await this.client.get(`${PATH}/${automationId}/runs?limit=100`);
    return jsonList(page, 'runs').map((run) => ({
      id: text(run, 'id'),
      status: text(run, 'status'),
      conversationId: jsonText(run, 'conversation_id'),
    }));
  }
}
