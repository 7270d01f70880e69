import { ApiSchema } from '@nestjs/swagger';
import { Shown } from '../../common/openapi/responses.js';
import { fieldOf, type Form } from '../../common/validation/field.js';
import { Nested, sentenceRule, Text, textList } from '../../common/validation/field-decorators.js';
import {
  type InjectionChange,
  MIN_PLACEHOLDER,
  parseSecretHost,
  type SecretInjection,
} from './secret-injection.js';

const MAX_HOSTS = 20;
const MAX_PATHS = 20;
const HOST = 'Expected a host such as api.example.com, api.example.com:8443 or http://api.example.com.';
const PLACEHOLDER = `Expected at least ${MIN_PLACEHOLDER} visible ASCII characters.`;

interface ListOptions {
  most: number;
  itemLength: number;
  rule: (text: string) => string | null;
  form?: Form;
}

/** A list of texts, each of which its rule judges. */
const RuledList = fieldOf(({ most, itemLength, rule, form }: ListOptions) => {
  const items = { type: 'string', maxLength: itemLength, ...form };
  const list = textList({ itemLength, form: { maxItems: most, items } });
  const judge = sentenceRule(rule, itemLength);
  return {
    ...list,
    rules: {
      ...list.rules,
      each: (value) =>
        Array.isArray(value)
          ? value.flatMap((text: unknown, index) =>
              judge(text, String(index)).map((problem) => ({ ...problem, path: [String(index)] })),
            )
          : [],
    },
  };
});

class SecretInjectDto {
  @Text('The header that the value is put in; `Authorization` unless given.', {
    nullable: true,
    example: 'Authorization',
    form: { maxLength: 64 },
    rule: matching(/^[A-Za-z][A-Za-z0-9-]{0,63}$/, 'Expected the name of a header, such as X-Api-Key.'),
  })
  header?: string | null;

  @Text(
    'The whole of the header, with `{}` where the value stands; `Bearer {}` unless given, and `{}` in other headers than `Authorization`.',
    {
      nullable: true,
      example: 'Bearer {}',
      form: { maxLength: 100 },
      rule: matching(
        /^[!-z|~ ]*\{\}[!-z|~ ]*$/,
        'Expected one {} among at most 100 characters, such as "token {}".',
      ),
    },
  )
  format?: string | null;
}

function matching(form: RegExp, expected: string) {
  return (text: string): string | null => (text.length <= 100 && form.test(text) ? null : expected);
}

/** What a request says of where a secret goes; for secrets of any owner. */
export class SecretInjectionDto implements InjectionChange {
  @RuledList(
    'Hosts (`name`, `name:port`, `*.name`) that the value is sent to, by https alone unless one is written `http://name`. Where credentials stay outside (`SANDBOX_CREDENTIALS=outside`), sandboxes hold a placeholder, and a proxy puts the value in towards these. Absent keeps the stored ones; null or none: the value is in sandboxes, in clear.',
    {
      nullable: true,
      most: MAX_HOSTS,
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

  @RuledList('Methods for which it is put in; all unless given.', {
    nullable: true,
    most: 20,
    itemLength: 20,
    example: ['GET', 'POST'],
    rule: matching(/^[A-Z]{1,20}$/, 'Expected a method in upper case, such as GET.'),
  })
  methods?: string[] | null;

  @RuledList('Paths for which it is put in: exact, or prefixes where they end in `*`; all unless given.', {
    nullable: true,
    most: MAX_PATHS,
    itemLength: 1_000,
    example: ['/v1/*'],
    rule: (text) =>
      /^\/[^?#*\s]*\*?$/.test(text)
        ? null
        : 'Expected a path, or the beginning of one and a *, such as /v1/*.',
  })
  paths?: string[] | null;

  @Text(
    `What stands for the value in sandboxes, for programs that check its form: at least ${MIN_PLACEHOLDER} characters, of no other secret. A random text of the same form unless given.`,
    {
      nullable: true,
      example: 'sk_test_placeholder_0123456789',
      form: { minLength: MIN_PLACEHOLDER, maxLength: 512 },
      rule: (text) => (/^[!-~]{16,512}$/.test(text) ? null : PLACEHOLDER),
    },
  )
  placeholder?: string | null;
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
}

export function toShownInjectionDto(
  injection: SecretInjection | null,
): Omit<SecretInjection, 'placeholder'> | object {
  const { placeholder: _, ...shown } = injection ?? {};
  return shown;
}
