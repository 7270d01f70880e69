import { Text } from '../../../common/validation/text.decorator.js';

/** Path of what belongs to a sandbox. */
export class SandboxIdDto {
  @Text({
    required: true,
    description: 'Id of the sandbox whose key is presented.',
    example: '6rXhcJ9tUqYt7Gm1aPz2Kw',
    form: { pattern: '^[0-9A-Za-z_-]{1,64}$' },
    rule: (id) => (/^[0-9A-Za-z_-]{1,64}$/.test(id) ? null : 'Expected the id of a sandbox.'),
  })
  sandbox_id: string;
}
