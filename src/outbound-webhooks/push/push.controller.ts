import { ECDH } from 'node:crypto';
import { Body, Controller, Delete, Get, Post } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { UserId } from '../../auth/auth.decorators.js';
import { ApiRoute, badInput } from '@slipway/api/openapi/api-route.js';
import { Shown, Time, toWire } from '@slipway/api/openapi/responses.js';
import { ChoiceList, Decimal, Nested, Text } from '@slipway/api/validation/field-decorators.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { UserAddresses } from '../user-addresses.js';
import { PushKeys } from './push-keys.js';
import { PUSH_KINDS, type PushKind } from './push-notification.js';
import {
  type BrowserSubscription,
  type PushSubscription,
  PushSubscriptionRepository,
} from './push-subscription.repository.js';

const ENDPOINT = 'https://updates.push.services.mozilla.com/wpush/v2/gAAAAABnP8';
const SUBSCRIPTION_ID = '7c2f1e0d-9b8a-4c5d-8e6f-1a2b3c4d5e6f';
const PUBLIC_KEY = 'BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8';

function KeyBytes(
  description: string,
  example: string,
  isGood: (bytes: Buffer) => boolean,
): PropertyDecorator {
  const rule = (text: string): string | null =>
    /^[\w-]+={0,2}$/.test(text) && isGood(Buffer.from(text, 'base64url'))
      ? null
      : 'Expected bytes in base64url, as a browser gives them.';
  return Text(description, { required: true, secret: true, example, maxLength: 100, rule });
}

/** Whether they are an uncompressed point of P-256: nothing can be encrypted for others. */
function isPoint(bytes: Buffer): boolean {
  try {
    ECDH.convertKey(bytes, 'prime256v1');
    return bytes.length === 65;
  } catch {
    return false;
  }
}

@NoOtherMembers()
class PushSubscriptionKeysDto {
  @KeyBytes('Public key of the browser.', PUBLIC_KEY, isPoint) p256dh: string;
  @KeyBytes('Shared by browser and senders.', 'k8JV6sjdbhAi1n3_LDBLvA', ({ length }) => length === 16)
  auth: string;
}

class PushEndpointDto {
  @Text('Address at the push service of the browser.', {
    required: true,
    example: ENDPOINT,
    form: { format: 'uri' },
    maxLength: 2_000,
    rule: (url) => addressProblem(url, ['http', 'https']),
  })
  endpoint: string;
}

@NoOtherMembers()
class CreatePushSubscriptionDto extends PushEndpointDto implements BrowserSubscription {
  @Nested('What the browser gives besides.', { type: PushSubscriptionKeysDto, required: true })
  keys: PushSubscriptionKeysDto;

  @ChoiceList('What to be told of; without it: all.', { values: PUSH_KINDS, example: ['waiting', 'failed'] })
  kinds?: readonly PushKind[];

  @Decimal('Browsers add it. It is not used: a subscription ends when its push service says so.', {
    minimum: 0,
    nullable: true,
    example: null,
  })
  expirationTime?: number | null;
}

@NoOtherMembers()
class RemovePushSubscriptionDto extends PushEndpointDto {}

class PushKeyDto {
  @Shown('`applicationServerKey` of a subscription, in base64url.', PUBLIC_KEY) public_key: string;
}

class PushSubscriptionDto {
  @ApiProperty({ format: 'uuid', example: SUBSCRIPTION_ID }) id: string;
  @ApiProperty({ example: ENDPOINT }) endpoint: string;
  @ApiProperty({ enum: PUSH_KINDS, isArray: true, example: ['waiting', 'failed'] }) kinds: PushKind[];
  @Time() created_at: Date;
}

@ApiTags('Notifications')
@Controller('api/v1/push')
export class PushController {
  constructor(
    private readonly keys: PushKeys,
    private readonly subscriptions: PushSubscriptionRepository,
    private readonly addresses: UserAddresses,
  ) {}

  @Get('key')
  @ApiRoute('get_push_key', 'Look up the key for Web Push', {
    description: 'Browsers subscribe for it. It stays the same as long as the database does.',
    answer: { type: PushKeyDto, description: 'The public key (VAPID)' },
  })
  async key(): Promise<PushKeyDto> {
    return { public_key: (await this.keys.pair()).publicKey };
  }

  @Post('subscriptions')
  @ApiRoute('create_push_subscription', 'Have a browser notified', {
    description:
      'Takes what `PushManager.subscribe()` gives, for the kinds `waiting`, `finished`, `failed` and `pull_request` (it has ' +
      'reached its goal). A message holds title, state and link of a conversation. The same endpoint again replaces its ' +
      'earlier kinds, and user. The newest 20 of a user stay; one whose push service answers 404 or 410 goes.',
    status: 201,
    answer: { type: PushSubscriptionDto, description: 'The subscription' },
    invalid: badInput(
      'body.endpoint',
      'Expected an https address of a public server; WEBHOOK_HOST_ALLOWLIST may name others.',
    ),
  })
  async create(
    @UserId() userId: string,
    @Body() { endpoint, keys: { p256dh, auth }, kinds = PUSH_KINDS }: CreatePushSubscriptionDto,
  ): Promise<PushSubscriptionDto> {
    this.addresses.check(endpoint, 'endpoint');
    const row = await this.subscriptions.put(userId, { endpoint, keys: { p256dh, auth } }, [
      ...new Set(kinds),
    ]);
    return shown(Object.assign(row, { endpoint }));
  }

  @Get('subscriptions')
  @ApiRoute('list_push_subscriptions', 'List the browsers that are notified', {
    description: 'The oldest first, without their keys.',
    answer: { type: [PushSubscriptionDto], description: 'Your subscriptions' },
  })
  async list(@UserId() userId: string): Promise<PushSubscriptionDto[]> {
    return (await this.subscriptions.listOf(userId)).map(shown);
  }

  @Delete('subscriptions')
  @ApiRoute('delete_push_subscription', 'Have a browser notified no more', {
    description: 'What waits for it is not sent. Nothing happens where there is none.',
    status: 204,
    answer: { description: 'There is none any more' },
  })
  async remove(@UserId() userId: string, @Body() { endpoint }: RemovePushSubscriptionDto): Promise<void> {
    await this.subscriptions.removeAt(userId, endpoint);
  }
}

function shown(row: PushSubscription & Pick<BrowserSubscription, 'endpoint'>): PushSubscriptionDto {
  return toWire(row, 'id', 'endpoint', 'kinds', 'createdAt');
}
