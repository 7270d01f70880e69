import request from 'supertest';
import {
  DELIVERIES_CHANNEL,
  WebhookDeliveryRepository,
} from '../../src/outbound-webhooks/webhook-delivery.repository.js';
import type { WebhookEvent } from '../../src/outbound-webhooks/webhook-event.js';
import type { TestApp, TestUser } from './create-test-app.js';

export const WEBHOOK_ENDPOINTS = '/api/v1/webhook-endpoints';
export const FINISHED: WebhookEvent = { type: 'conversation.finished', data: { conversation_id: 'c' } };

export interface ShownDelivery {
  id: string;
  event_type: string;
  status: string;
  attempts: number;
  dropped: number;
  last_response_status: number | null;
  last_error: string | null;
  next_attempt_at: string | null;
}

/** The webhook endpoints of a user. */
export class WebhooksClient {
  constructor(
    private readonly service: TestApp,
    private readonly user: TestUser,
  ) {}

  call(method: 'get' | 'post' | 'patch' | 'delete', path = ''): request.Test {
    return request(this.service.url)[method](`${WEBHOOK_ENDPOINTS}${path}`).set(this.user.headers);
  }

  async create(url: string, body: object = {}): Promise<{ id: string; secret: string }> {
    const { body: created } = await this.call('post')
      .send({ url, ...body })
      .expect(201);
    return created;
  }

  async deliveries(id: string, query = ''): Promise<ShownDelivery[]> {
    const { body } = await this.call('get', `/${id}/deliveries${query}`).expect(200);
    return body.items;
  }

  async publish(event = FINISHED): Promise<void> {
    const { app, dataSource } = this.service;
    await dataSource.transaction(async (manager) => {
      await app.get(WebhookDeliveryRepository).publish(manager, this.user.id, event);
    });
  }
}

/** Has workers look for what is due, as they do by themselves every few seconds. */
export async function announceDeliveries({ dataSource }: TestApp): Promise<void> {
  await dataSource.query(`SELECT pg_notify('${DELIVERIES_CHANNEL}', '')`);
}
