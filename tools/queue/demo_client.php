<?php
// SPDX-License-Identifier: GPL-2.0
// A client of twheelq's by Pheanstalk, which is for beanstalkd: for tools/queue/demo. What
// goes beyond beanstalkd's protocol (a delay with a unit, fail, policy) are commands of a
// class of ours below, as any program would add them. The commands are those of demo_client.

require '/usr/share/php/Pheanstalk/autoload.php';

use Pheanstalk\Command\AbstractCommand;
use Pheanstalk\Connection;
use Pheanstalk\Contract\ResponseParserInterface;
use Pheanstalk\Exception\ConnectionException;
use Pheanstalk\Exception\SocketException;
use Pheanstalk\JobId;
use Pheanstalk\Pheanstalk;
use Pheanstalk\Response\ArrayResponse;
use Pheanstalk\SocketFactory;

/** A line of the protocol, with or without a body; the answer is its line. */
class Line extends AbstractCommand implements ResponseParserInterface
{
    public function __construct(private string $line, private ?string $body = null)
    {
    }

    public function getCommandLine(): string
    {
        return $this->line;
    }

    public function hasData(): bool
    {
        return $this->body !== null;
    }

    public function getData(): string
    {
        return $this->body;
    }

    public function getDataLength(): int
    {
        return strlen($this->body);
    }

    public function parseResponse(string $line, ?string $data): ArrayResponse
    {
        return $this->createResponse($line);
    }
}

$port = (int)$argv[1];
$connection = new Connection(new SocketFactory('127.0.0.1', $port, 10));
$client = new Pheanstalk($connection);

function answer_of(string $line, ?string $body = null): string
{
    global $connection;

    return $connection->dispatchCommand(new Line($line, $body))->getResponseName();
}

function number_of(string $answer, string $word): string
{
    if (!str_starts_with($answer, "$word "))
        throw new Exception("\"$answer\" came, and not $word");
    return substr($answer, strlen($word) + 1);
}

function put(string $tube, string $delay, string $body): void
{
    global $client;

    $client->useTube($tube);
    $answer = answer_of("put 0 $delay 60 " . strlen($body), $body);
    echo number_of($answer, 'INSERTED'), "\n";
}

function take(string $tube, string $timeout): void
{
    global $client;

    $job = $client->watch($tube)->reserveWithTimeout((int)$timeout);
    if ($job === null) {
        echo "none\n";
        return;
    }
    $client->delete($job);
    echo $job->getId(), ' ', $job->getData(), "\n";
}

function fail(string $tube, string $timeout, string $reason): void
{
    global $client;

    $job = $client->watch($tube)->reserveWithTimeout((int)$timeout);
    if ($job === null) {
        echo "none\n";
        return;
    }
    $when = (int)((float)file_get_contents('/proc/uptime') * 100);
    $answer = answer_of("fail {$job->getId()} " . strlen($reason), $reason);
    echo $when, ' ', $job->getId(), ' ', $answer, "\n";
}

function policy(string ...$arguments): void
{
    $answer = answer_of('policy ' . implode(' ', $arguments));
    if ($answer !== 'POLICY')
        throw new Exception("\"$answer\" came, and not POLICY");
}

function kick(string $tube, string $n): void
{
    global $client;

    echo $client->useTube($tube)->kick((int)$n), "\n";
}

function stats_job(string $id): void
{
    global $client;

    foreach ($client->statsJob(new JobId((int)$id)) as $key => $value)
        echo "$key: $value\n";
}

// The end of the daemon is the end of the answers.
function flood(string $tube, string $n, string $delay): void
{
    global $client;

    $client->useTube($tube);
    try {
        for ($i = 1; $i <= (int)$n; $i++) {
            $client->put((string)$i, 0, (int)$delay, 60);
            echo "$i\n";
        }
    } catch (SocketException | ConnectionException $end) {
    }
}

function drain(string $tube, string $timeout, string $n): void
{
    global $client;

    $client->watch($tube);
    for ($i = 0; $i < (int)$n; $i++) {
        $job = $client->reserveWithTimeout((int)$timeout);
        if ($job === null)
            return;
        $client->delete($job);
        echo $job->getData(), "\n";
    }
}

$command = str_replace('-', '_', $argv[2]);
$command(...array_slice($argv, 3));
