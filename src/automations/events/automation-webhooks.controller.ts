import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented } from '../../common/openapi/api-route.js';
import { ServiceAddress } from '../../config/service-address.js';
import { createWebhookSecret } from '../../outbound-webhooks/webhook-signature.js';
import { CurrentOwner, type Owner, unknown } from '../current-owner.js';
import { givenMembers, OffsetQueryDto } from '../definitions/automation.dto.js';
import {
  type AutomationWebhook,
  AutomationWebhookRepository,
  SOURCE_TAKEN,
} from './automation-webhook.repository.js';
import {
  WebhookDto,
  WebhookIdDto,
  WebhookListDto,
  WebhookSecretDto,
  CreateWebhookDto,
  NewWebhookDto,
  toWebhookDto,
  UpdateWebhookDto,
  USUAL,
} from './automation-webhooks.dto.js';

const UNKNOWN = unknown('webhook');
const TAKEN = documented(409, SOURCE_TAKEN, 'The source has one, or there are as many as may be');
@ApiTags('Automations')
@Controller('api/automation/v1/webhooks')
export class AutomationWebhooksController {
  constructor(
    private readonly webhooks: AutomationWebhookRepository,
    private readonly address: ServiceAddress,
  ) {}

  @Post()
  @ApiRoute('create_automation_webhook', 'Take events of a source', {
    description: 'Enter `webhook_url` and the secret at the host, with JSON as content type.',
    status: 201,
    answer: { type: NewWebhookDto, description: 'The webhook, with its secret if that is new' },
    examples: { github: { summary: 'GitHub', value: { name: 'Octo', source: 'github' } } },
    problems: [TAKEN],
  })
  async create(@CurrentOwner() owner: Owner, @Body() body: CreateWebhookDto): Promise<NewWebhookDto> {
    const { webhook_secret: given, ...values } = body;
    const secret = given ?? createWebhookSecret();
    const webhook = await this.webhooks.add(owner, { ...USUAL, ...givenMembers(values), secret });
    return Object.assign(this.shown(webhook), { webhook_secret: given === undefined ? secret : null });
  }

  @Get()
  @ApiRoute('list_automation_webhooks', 'List webhooks of sources', {
    description: 'The newest first, without their secrets.',
    answer: { type: WebhookListDto, description: 'A page of your webhooks' },
  })
  async list(
    @CurrentOwner() owner: Owner,
    @Query() { limit = 50, offset = 0 }: OffsetQueryDto,
  ): Promise<WebhookListDto> {
    const [webhooks, total] = await this.webhooks.page(owner, { limit, offset });
    return { webhooks: webhooks.map((webhook) => this.shown(webhook)), total };
  }

  @Get(':id')
  @ApiRoute('get_automation_webhook', 'Look at the webhook of a source', {
    description: 'Its secret is shown when it is made, and never again.',
    answer: { type: WebhookDto, description: 'The webhook without its secret' },
    problems: [UNKNOWN],
  })
  async get(@CurrentOwner() owner: Owner, @Param() { id }: WebhookIdDto): Promise<WebhookDto> {
    return this.shown(await this.webhooks.getOf(owner, id));
  }

  @Patch(':id')
  @ApiRoute('update_automation_webhook', 'Change the webhook of a source', {
    description: 'What is left out stays.',
    answer: { type: WebhookDto, description: 'The webhook as it is now' },
    problems: [UNKNOWN],
  })
  async update(
    @CurrentOwner() owner: Owner,
    @Param() { id }: WebhookIdDto,
    @Body() body: UpdateWebhookDto,
  ): Promise<WebhookDto> {
    const values = givenMembers(body);
    return this.shown(await this.webhooks.changeOf(owner, id, Object.keys(values), () => values));
  }

  @Delete(':id')
  @ApiRoute('delete_automation_webhook', 'Remove the webhook of a source', {
    description: 'Events of the source are refused from now on.',
    status: 204,
    answer: { description: 'Removed' },
    problems: [UNKNOWN],
  })
  async remove(@CurrentOwner() owner: Owner, @Param() { id }: WebhookIdDto): Promise<void> {
    await this.webhooks.removeOf(owner, id);
  }

  @Post(':id/rotate-secret')
  @ApiRoute('rotate_automation_webhook_secret', 'Replace the secret of a source', {
    description: 'The old one ends at once.',
    answer: { type: WebhookSecretDto, description: 'The new secret' },
    problems: [UNKNOWN],
  })
  async rotateSecret(@CurrentOwner() owner: Owner, @Param() { id }: WebhookIdDto): Promise<WebhookSecretDto> {
    const secret = createWebhookSecret();
    await this.webhooks.setSecret(owner, id, secret);
    return { webhook_secret: secret };
  }

  private shown(webhook: AutomationWebhook): WebhookDto {
    return toWebhookDto(webhook, this.address.publicUrl);
  }
}
