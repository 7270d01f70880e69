import { ApiSchema } from '@nestjs/swagger';
import { Shown } from '@slipway/api/openapi/responses.js';
import { SchemaRules } from '@slipway/api/openapi/schema-rules.js';
import { Choice, Nested, Text, TextList } from '@slipway/api/validation/field-decorators.js';
import {
  type InjectionChange,
  MIN_PLACEHOLDER,
  parseSecretHost,
  SECRET_PHASES,
  type SecretInjection,
  type SecretPhase,
} from '@slipway/egress-rules/secret-injection.js';

const MAX_HOSTS = 20;
const MAX_PATHS = 20;
const HOST = 'Expected a host such as api.example.com, api.example.com:8443 or http://api.example.com.';
const PLACEHOLDER = `Expected at least ${MIN_PLACEHOLDER} visible ASCII characters.`;

@SchemaRules({ additionalProperties: false })
class SecretInjectDto {
  @Text('The header that the value is put in; `Authorization` unless given.', {
    nullable: true,
    example: 'Authorization',
    maxLength: 64,
    pattern: {
      regex: /^[A-Za-z][A-Za-z0-9-]*$/,
      expected: 'Expected the name of a header, such as X-Api-Key.',
    },
  })
  header?: string | null;

  @Text(
    'The whole of the header, with `{}` where the value stands; `Bearer {}` unless given, and `{}` in other headers than `Authorization`.',
    {
      nullable: true,
      example: 'Bearer {}',
      maxLength: 100,
      pattern: {
        regex: /^[!-z|~ ]*\{\}[!-z|~ ]*$/,
        expected: 'Expected one {} among at most 100 characters, such as "token {}".',
      },
    },
  )
  format?: string | null;
}

/** What a request says of where a secret goes, and when; for secrets of any owner. */
export class SecretInjectionDto implements InjectionChange {
  @TextList(
    'Hosts (`name`, `name:port`, `*.name`) that the value is sent to, by https alone unless one is written `http://name`. Where credentials stay outside (`SANDBOX_CREDENTIALS`), sandboxes hold a placeholder, and a proxy puts the value in towards these. Absent keeps the stored ones; null or none: the value is in sandboxes, in clear.',
    {
      nullable: true,
      form: { maxItems: MAX_HOSTS },
      itemLength: 300,
      example: ['api.example.com'],
      rule: (text) => (parseSecretHost(text) === null ? HOST : null),
    },
  )
  hosts?: string[] | null;

  @Nested('Where in a request the value is put in. Absent keeps what is stored, null is the default.', {
    nullable: true,
    type: SecretInjectDto,
    onlyMembers: ['header', 'format'],
  })
  inject?: SecretInjectDto | null;

  @TextList('Methods for which it is put in; all unless given.', {
    nullable: true,
    form: { maxItems: 20 },
    itemLength: 20,
    example: ['GET', 'POST'],
    pattern: { regex: /^[A-Z]{1,20}$/, expected: 'Expected a method in upper case, such as GET.' },
  })
  methods?: string[] | null;

  @TextList('Paths for which it is put in: exact, or prefixes where they end in `*`; all unless given.', {
    nullable: true,
    form: { maxItems: MAX_PATHS },
    itemLength: 1_000,
    example: ['/v1/*'],
    pattern: {
      regex: /^\/[^?#*\s]*\*?$/,
      expected: 'Expected a path, or the beginning of one and a *, such as /v1/*.',
    },
  })
  paths?: string[] | null;

  @Text(
    `What stands for the value in sandboxes, for programs that check its form: at least ${MIN_PLACEHOLDER} characters, of no other secret. A random text of the same form unless given.`,
    {
      nullable: true,
      example: 'sk_test_placeholder_0123456789',
      maxLength: 512,
      pattern: { regex: /^[!-~]{16,512}$/, expected: PLACEHOLDER },
    },
  )
  placeholder?: string | null;

  @Choice(
    '`setup`: only `.openhands/setup.sh` of a start that makes its sandbox gets it, as a variable, and it is gone before an agent begins. Absent keeps what is stored; null: agents get it.',
    { nullable: true, values: SECRET_PHASES, example: 'setup' },
  )
  phase?: SecretPhase | null;
}

@ApiSchema({ name: 'SecretInject' })
class ShownInjectDto {
  @Shown('The header.', 'Authorization') header: string;
  @Shown('The whole of it, with `{}` where the value stands.', 'Bearer {}') format: string;
}

/** What lists show of it; absent members of a secret without hosts, as older clients know it. */
export class ShownInjectionDto {
  @Shown('Hosts that the value is sent to. Absent: it is in sandboxes, in clear.', ['api.example.com'], {
    type: [String],
    required: false,
  })
  hosts?: string[];

  @Shown('Where the value is put in; absent without hosts.', undefined, {
    type: ShownInjectDto,
    required: false,
  })
  inject?: ShownInjectDto;

  @Shown('Methods for which it is put in; absent: all.', ['GET'], { type: [String], required: false })
  methods?: string[];

  @Shown('Paths for which it is put in; absent: all.', ['/v1/*'], { type: [String], required: false })
  paths?: string[];

  @Shown('`setup`: only the setup of sandboxes gets it. Absent: agents do.', 'setup', {
    enum: [...SECRET_PHASES],
    required: false,
  })
  phase?: SecretPhase;
}

export function toShownInjectionDto(
  injection: SecretInjection | null,
  phase: SecretPhase | null,
): Omit<SecretInjection, 'placeholder'> | object {
  const { placeholder: _, ...shown } = injection ?? {};
  return { ...shown, ...(phase !== null && { phase }) };
}
