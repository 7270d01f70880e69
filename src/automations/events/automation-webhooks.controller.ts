import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { DomainError } from '../../common/errors/domain-error.js';
import { ApiRoute, type DocumentedProblem } from '../../common/openapi/api-route.js';
import { ServiceAddress } from '../../config/service-address.js';
import { createWebhookSecret } from '../../outbound-webhooks/webhook-signature.js';
import { CurrentOwner, type Owner } from '../current-owner.js';
import { OffsetQueryDto } from '../definitions/automation.dto.js';
import { AutomationWebhookRepository, MAX_AUTOMATION_WEBHOOKS } from './automation-webhook.repository.js';
import {
  AutomationWebhookDto,
  AutomationWebhookIdDto,
  AutomationWebhookListDto,
  AutomationWebhookSecretDto,
  CreateAutomationWebhookDto,
  NewAutomationWebhookDto,
  toAutomationWebhookDto,
  UpdateAutomationWebhookDto,
} from './automation-webhooks.dto.js';

const UNKNOWN: DocumentedProblem = {
  status: 404,
  detail: 'There is no webhook with this id.',
  description: 'Unknown webhook, or not yours',
};
const TAKEN: DocumentedProblem = {
  status: 409,
  code: 'conflict',
  detail: 'This source has a webhook; there is one for each.',
  description: 'The source has one, or there are as many as may be',
};

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
    answer: { type: NewAutomationWebhookDto, description: 'The webhook, with its secret if that is new' },
    examples: { github: { summary: 'GitHub', value: { name: 'Octo', source: 'github' } } },
    problems: [TAKEN],
  })
  async create(
    @CurrentOwner() owner: Owner,
    @Body() body: CreateAutomationWebhookDto,
  ): Promise<NewAutomationWebhookDto> {
    const secret = body.webhook_secret ?? createWebhookSecret();
    const added = await this.webhooks.add(owner, {
      name: body.name,
      source: body.source,
      eventKeyExpr: body.event_key_expr ?? 'type',
      signatureHeader: body.signature_header ?? 'X-Signature-256',
      signatureScheme: body.signature_scheme ?? 'hmac_sha256_hex',
      eventIdHeader: body.event_id_header ?? null,
      secret,
    });
    if (typeof added === 'string') {
      const many = `You have ${MAX_AUTOMATION_WEBHOOKS} webhooks, the most that are kept; delete one first.`;
      throw new DomainError('conflict', 'conflict', added === 'many' ? many : String(TAKEN.detail));
    }
    const shown = toAutomationWebhookDto(added, this.address.publicUrl);
    return Object.assign(shown, { webhook_secret: body.webhook_secret === undefined ? secret : null });
  }

  @Get()
  @ApiRoute('list_automation_webhooks', 'List webhooks of sources', {
    description: 'The newest first, without their secrets.',
    answer: { type: AutomationWebhookListDto, description: 'A page of your webhooks' },
  })
  async list(
    @CurrentOwner() owner: Owner,
    @Query() { limit = 50, offset = 0 }: OffsetQueryDto,
  ): Promise<AutomationWebhookListDto> {
    const [webhooks, total] = await this.webhooks.page(owner, { limit, offset });
    const { publicUrl } = this.address;
    return { webhooks: webhooks.map((webhook) => toAutomationWebhookDto(webhook, publicUrl)), total };
  }

  @Get(':id')
  @ApiRoute('get_automation_webhook', 'Look at the webhook of a source', {
    description: 'Its secret is shown when it is made, and never again.',
    answer: { type: AutomationWebhookDto, description: 'The webhook without its secret' },
    problems: [UNKNOWN],
  })
  async get(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationWebhookIdDto,
  ): Promise<AutomationWebhookDto> {
    return toAutomationWebhookDto(found(await this.webhooks.findOf(owner, id)), this.address.publicUrl);
  }

  @Patch(':id')
  @ApiRoute('update_automation_webhook', 'Change the webhook of a source', {
    description: 'What is left out stays.',
    answer: { type: AutomationWebhookDto, description: 'The webhook as it is now' },
    problems: [UNKNOWN],
  })
  async update(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationWebhookIdDto,
    @Body() body: UpdateAutomationWebhookDto,
  ): Promise<AutomationWebhookDto> {
    const changed = await this.webhooks.change(owner, id, {
      ...(body.name !== undefined && { name: body.name }),
      ...(body.enabled !== undefined && { enabled: body.enabled }),
      ...(body.event_key_expr !== undefined && { eventKeyExpr: body.event_key_expr }),
      ...(body.signature_header !== undefined && { signatureHeader: body.signature_header }),
      ...(body.signature_scheme !== undefined && { signatureScheme: body.signature_scheme }),
      ...(body.event_id_header !== undefined && { eventIdHeader: body.event_id_header }),
    });
    return toAutomationWebhookDto(found(changed), this.address.publicUrl);
  }

  @Delete(':id')
  @ApiRoute('delete_automation_webhook', 'Remove the webhook of a source', {
    description: 'Events of the source are refused from now on.',
    status: 204,
    answer: { description: 'Removed' },
    problems: [UNKNOWN],
  })
  async remove(@CurrentOwner() owner: Owner, @Param() { id }: AutomationWebhookIdDto): Promise<void> {
    if (!(await this.webhooks.removeOf(owner, id))) {
      throw unknownWebhook();
    }
  }

  @Post(':id/rotate-secret')
  @ApiRoute('rotate_automation_webhook_secret', 'Replace the secret of a source', {
    description: 'The old one ends at once.',
    answer: { type: AutomationWebhookSecretDto, description: 'The new secret' },
    problems: [UNKNOWN],
  })
  async rotateSecret(
    @CurrentOwner() owner: Owner,
    @Param() { id }: AutomationWebhookIdDto,
  ): Promise<AutomationWebhookSecretDto> {
    const secret = createWebhookSecret();
    found(await this.webhooks.change(owner, id, { secret }));
    return { webhook_secret: secret };
  }
}

function found<T>(webhook: T | null): T {
  if (webhook === null) {
    throw unknownWebhook();
  }
  return webhook;
}

function unknownWebhook(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no webhook with this id.');
}
