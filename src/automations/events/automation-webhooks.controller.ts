import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiExtraModels, ApiProperty, ApiSchema, ApiTags } from '@nestjs/swagger';
import {
  createWebhookSecret,
  SIGNATURE_SCHEMES,
  type SignatureScheme,
} from '@slipway/common/webhook-signature.js';
import { unknownId } from '../../common/errors/domain-error.js';
import { expressionProblem, MAX_EXPRESSION } from '@slipway/common/jmespath.js';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { OrNull, Shown, ShownOrNull, Time, toWire, USER_ID } from '@slipway/api/openapi/responses.js';
import { OffsetQueryDto } from '@slipway/api/pagination/page.dto.js';
import { Choice, Flag, Identifier, Text } from '@slipway/api/validation/field-decorators.js';
import { ServiceAddress } from '../../config/service-address.js';
import { newestPage } from '@slipway/database/page-bytes.js';
import { WEBHOOK_SOURCES } from '@slipway/git-providers/git-servers.js';
import type { Owner } from '../../auth/owned.repository.js';
import { CurrentOwner } from '../../organizations/installation-organization.js';
import { SOURCE_NAME } from '../definitions/trigger.dto.js';
import {
  type AutomationWebhook,
  AutomationWebhookRepository,
  NO_REPOSITORIES,
  SOURCE_TAKEN,
} from './automation-webhook.repository.js';

const UNKNOWN = thrown(unknownId('webhook'), 'Unknown webhook, or not yours');
const TAKEN = documented(409, SOURCE_TAKEN, 'The source has one, or there are as many as may be');
const ID = 'e2d3c4b5-a697-4889-9a0b-1c2d3e4f5a6b';
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=';
const EVENTS = '/api/automation/v1/events';
const WEBHOOK_URL = `https://slipway.example.com${EVENTS}/${USER_ID}/github`;
const NAME = { example: 'Octo', maxLength: 255, pattern: { regex: /\S/, expected: 'Expected a name.' } };
const HEADER = {
  maxLength: 100,
  pattern: { regex: /^[A-Za-z0-9-]{1,100}$/, expected: 'Expected the name of a header.' },
};

/** Rules of a source that says nothing else. */
const USUAL = {
  event_key_expr: 'type',
  signature_header: 'X-Signature-256',
  signature_scheme: 'hmac_sha256_hex',
  event_id_header: null,
  writers_expr: null,
} as const;

@ApiSchema({ description: 'How a source of your own is read; the others follow the rules of their host.' })
class WebhookFieldsDto {
  @Text('JMESPath to the key of an event.', {
    nullIsAbsent: true,
    default: USUAL.event_key_expr,
    maxLength: 500,
    rule: expressionProblem,
  })
  event_key_expr?: string;

  @Text('Header with the signature.', { nullIsAbsent: true, default: USUAL.signature_header, ...HEADER })
  signature_header?: string;

  @Choice('How the signature is made.', {
    nullIsAbsent: true,
    default: USUAL.signature_scheme,
    values: SIGNATURE_SCHEMES,
  })
  signature_scheme?: SignatureScheme;

  @Text('Header with an id, by which repetitions are known, as by their body.', { nullable: true, ...HEADER })
  event_id_header?: string | null;

  @Text('JMESPath that is true for an event of somebody who may start agents with all that you have.', {
    nullable: true,
    example: "user.role == 'maintainer'",
    maxLength: MAX_EXPRESSION,
    rule: expressionProblem,
  })
  writers_expr?: string | null;
}

@ApiExtraModels(WebhookFieldsDto)
@ApiSchema({ name: 'AutomationWebhookCreate' })
class CreateWebhookDto extends WebhookFieldsDto {
  @Text('For people.', { required: true, ...NAME }) name: string;

  @Text(`${WEBHOOK_SOURCES.map((name) => `\`${name}\``).join(', ')}, or a name of your own.`, {
    required: true,
    example: 'github',
    maxLength: 50,
    pattern: { regex: SOURCE_NAME, expected: 'Expected lower case letters, digits, - and _.' },
  })
  source: string;

  @Text('Secret that the host signs with; by default a random one, which is shown once.', {
    nullIsAbsent: true,
    secret: true,
    maxLength: 255,
    form: { minLength: 8 },
    rule: (text) => (text.length < 8 ? 'Expected at least 8 characters.' : null),
  })
  webhook_secret?: string;
}

@ApiSchema({ name: 'AutomationWebhookUpdate' })
class UpdateWebhookDto extends WebhookFieldsDto {
  @Text('For people.', { nullIsAbsent: true, ...NAME }) name?: string;
  @Flag('Whether its events are taken.', { nullIsAbsent: true }) enabled?: boolean;
}

@ApiSchema({ name: 'AutomationWebhookRepository' })
class WebhookRepositoryDto {
  @Text('As its host names it.', {
    required: true,
    example: 'octo/app',
    maxLength: 255,
    pattern: { regex: /^\S+\/\S+$/, expected: 'Expected a name such as octo/app.' },
  })
  repository: string;
}

class WebhookIdDto {
  @Identifier('Id of the webhook.', { required: true, example: ID }) id: string;
}

@ApiSchema({ name: 'AutomationWebhook' })
class WebhookDto {
  @ApiProperty({ format: 'uuid', example: ID }) id: string;
  @ApiProperty({ format: 'uuid', example: USER_ID }) org_id: string;
  @ApiProperty({ example: 'Octo' }) name: string;
  @ApiProperty({ example: 'github' }) source: string;
  @Shown('What to enter at the host.', WEBHOOK_URL, { format: 'uri' }) webhook_url: string;
  @ApiProperty({ example: USUAL.event_key_expr }) event_key_expr: string;
  @ApiProperty({ example: USUAL.signature_header }) signature_header: string;
  @ApiProperty({ enum: SIGNATURE_SCHEMES, example: USUAL.signature_scheme })
  signature_scheme: SignatureScheme;
  @OrNull(null) event_id_header: string | null;
  @OrNull(null) writers_expr: string | null;
  @ApiProperty({ example: true }) enabled: boolean;
  @Time() created_at: Date;
  @Time() updated_at: Date;
}

@ApiSchema({ name: 'AutomationWebhookWithSecret' })
class NewWebhookDto extends WebhookDto {
  @ShownOrNull('Shown here and never again; null where it was given.', SECRET) webhook_secret: string | null;
}

@ApiSchema({ name: 'AutomationWebhookList' })
class WebhookListDto {
  @ApiProperty({ type: [WebhookDto] }) webhooks: WebhookDto[];
  @ApiProperty({ type: 'integer', example: 1 }) total: number;
}

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
    const webhook = await this.webhooks.add(owner, { ...USUAL, ...values, secret });
    return Object.assign(this.shown(webhook), { webhook_secret: given === undefined ? secret : null });
  }

  @Get()
  @ApiRoute('list_automation_webhooks', 'List webhooks of sources', {
    description: 'The newest first, without their secrets.',
    answer: { type: WebhookListDto, description: 'A page of your webhooks' },
  })
  async list(@CurrentOwner() owner: Owner, @Query() place: OffsetQueryDto): Promise<WebhookListDto> {
    const [webhooks, total] = await newestPage(this.webhooks, owner, place);
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
    return this.shown(await this.webhooks.changeOf(owner, id, body, () => body));
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
    answer: { type: NewWebhookDto, description: 'The webhook with its new secret' },
    problems: [UNKNOWN],
  })
  async rotateSecret(@CurrentOwner() owner: Owner, @Param() { id }: WebhookIdDto): Promise<NewWebhookDto> {
    const webhook_secret = createWebhookSecret();
    const webhook = await this.webhooks.setSecret(owner, id, webhook_secret);
    return Object.assign(this.shown(webhook), { webhook_secret });
  }

  @Post(':id/repository-secret')
  @ApiRoute('show_repository_webhook_secret', 'Show the secret of one repository', {
    description:
      'For repositories whose administrators shall not know the secret of the source, which signs events of all. Always the same for a repository, until the secret of the source is replaced. Enter both `webhook_url` and the secret.',
    answer: { type: NewWebhookDto, description: 'The webhook as the repository has to know it' },
    problems: [UNKNOWN, documented(409, NO_REPOSITORIES, 'A source of your own')],
  })
  async repositorySecret(
    @CurrentOwner() owner: Owner,
    @Param() { id }: WebhookIdDto,
    @Body() { repository }: WebhookRepositoryDto,
  ): Promise<NewWebhookDto> {
    const { webhook, secret } = await this.webhooks.showSecretOf(owner, id, repository);
    const shown = this.shown(webhook);
    const webhook_url = `${shown.webhook_url}?repository=${encodeURIComponent(repository)}`;
    return Object.assign(shown, { webhook_url, webhook_secret: secret });
  }

  private shown(webhook: AutomationWebhook): WebhookDto {
    const rules = ['event_key_expr', 'signature_header', 'signature_scheme', 'event_id_header'] as const;
    const shown = ['id', 'orgId', 'name', 'source', ...rules, 'writers_expr', 'enabled'] as const;
    return {
      ...toWire(webhook, ...shown, 'createdAt', 'updatedAt'),
      webhook_url: `${this.address.publicUrl}${EVENTS}/${webhook.orgId}/${webhook.source}`,
    };
  }
}
