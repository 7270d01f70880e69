import { ApiSchema } from '@nestjs/swagger';
import { isEmail } from 'class-validator';
import { Text } from '../../common/validation/text.decorator.js';

/** Body of `POST /api/v1/users`. */
@ApiSchema({ name: 'CreateUser' })
export class CreateUserDto {
  @Text({
    required: true,
    description: 'Unique, compared in lower case.',
    example: 'ada@example.com',
    format: 'email',
    rule: (email) =>
      isEmail(email, { require_tld: false }) ? null : 'Expected an email address such as ada@example.com.',
  })
  email: string;

  @Text({
    nullable: true,
    description: 'Shown to people.',
    example: 'Ada',
    form: { maxLength: 200 },
    rule: (name) => (name.length > 200 ? 'Expected at most 200 characters.' : null),
  })
  name?: string | null;
}
