import { Injectable } from '@nestjs/common';
import { DomainError, found } from '../common/errors/domain-error.js';
import type { Page, PageRequest } from '@slipway/api/pagination/page.js';
import {
  type DeliveryStatus,
  type WebhookDelivery,
  WebhookDeliveryRepository,
} from './webhook-delivery.repository.js';
import { WebhookDeliveryWorker } from './webhook-delivery.worker.js';
import {
  type WebhookEndpoint,
  ENDPOINT,
  type EndpointValues,
  WebhookEndpointRepository,
} from './webhook-endpoint.repository.js';
import { UserAddresses } from './user-addresses.js';
import { EVERY_EVENT } from './webhook-event.js';
import { createWebhookSecret } from '@slipway/common/webhook-signature.js';

export type NewEndpoint = Pick<EndpointValues, 'url'> & Partial<EndpointValues>;

/** The secret is available only now. */
export interface EndpointWithSecret {
  endpoint: WebhookEndpoint;
  secret: string;
}

@Injectable()
export class WebhookEndpointsService {
  constructor(
    private readonly endpoints: WebhookEndpointRepository,
    private readonly deliveries: WebhookDeliveryRepository,
    private readonly worker: WebhookDeliveryWorker,
    private readonly addresses: UserAddresses,
  ) {}

  /** Adds an endpoint. @throws DomainError conflict for too many; InvalidInputError for a forbidden address */
  async create(userId: string, given: NewEndpoint): Promise<EndpointWithSecret> {
    this.addresses.check(given.url, 'url');
    const secret = given.secret ?? createWebhookSecret();
    const endpoint = await this.endpoints.add(userId, {
      url: given.url,
      description: given.description ?? null,
      events: given.events ?? [EVERY_EVENT],
      enabled: given.enabled ?? true,
      secret,
    });
    return { endpoint, secret };
  }

  /** Sends at once what waits. @throws DomainError not_found; InvalidInputError as `create` */
  async change(userId: string, id: string, change: Partial<EndpointValues>): Promise<WebhookEndpoint> {
    if (change.url !== undefined) {
      this.addresses.check(change.url, 'url');
    }
    const endpoint = await this.endpoints.change(userId, id, change);
    await this.worker.hurry(endpoint);
    return endpoint;
  }

  /** Makes a new secret, which also signs the retries of earlier deliveries; the former one signs for a day as well. @throws DomainError not_found */
  async rotateSecret(userId: string, id: string): Promise<EndpointWithSecret> {
    const secret = createWebhookSecret();
    return { endpoint: await this.change(userId, id, { secret }), secret };
  }

  /** Sends a test event and awaits the response. @throws DomainError not_found, rate_limited, unavailable */
  async test(userId: string, id: string): Promise<WebhookDelivery> {
    return found(await this.worker.test(await this.endpoints.getOf({ userId }, id)), ENDPOINT);
  }

  /** @throws DomainError not_found; InvalidInputError for a page id of another list */
  async searchDeliveries(
    userId: string,
    id: string,
    { status = null, page_id: pageId, limit }: PageRequest & { status?: DeliveryStatus | null },
  ): Promise<Page<WebhookDelivery>> {
    const page = await this.deliveries.page(userId, id, { status, pageId, limit });
    return found(page, ENDPOINT);
  }

  /** Sends a delivery again, even a successful one. @throws DomainError not_found */
  async redeliver(userId: string, id: string, deliveryId: string): Promise<WebhookDelivery> {
    const endpoint = await this.endpoints.getOf({ userId }, id);
    await this.deliveries.redeliver(endpoint.id, deliveryId);
    const delivery = await this.deliveries.findOfEndpoint(endpoint.id, deliveryId);
    if (delivery === null) {
      throw new DomainError('not_found', 'The endpoint has no delivery with this id.');
    }
    return delivery;
  }
}
